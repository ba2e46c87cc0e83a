"""`bittrue fixpipe`: golden data of Ascend's matrix output, from a file of accumulators to a file of results."""

from __future__ import annotations

from .. import ascend
from ..files import save
from .arguments import one_array, parse_shape, quant_words
from .output import print_json

__all__ = ["fixpipe"]


def fixpipe(
    source: str, output: str, mode: str, quant: str | None, product: str, relu: bool, alpha: float | None,
    saturation: str | None, layout: str, format: str | None, shape: str | None, force: bool, as_json_text: bool,
) -> None:
    """Quantise accumulators and write the results."""
    of = ascend.parse_target(product if ":" in product else f"ascend:{product}")
    acc = one_array(source, format, parse_shape(shape))
    words = quant_words(quant)
    made = ascend.fixpipe(acc, mode, words, relu, of, alpha=alpha, layout=layout.upper(), saturation=saturation)
    save(output, made, force=force)
    named = ascend.quant_mode(mode).name
    if as_json_text:
        print_json({"input": source, "output": output, "mode": named, "product": of.name, "format": made.format.name,
                    "shape": list(made.shape), "bytes": made.nbytes})
        return
    print(f"wrote {output}: {list(acc.shape)} {acc.format.name} to {made.format.name} by {named} on {of.name}, "
          f"{list(made.shape)} in {layout.upper()}, {made.nbytes} bytes")
