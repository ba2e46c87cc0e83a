"""`bittrue rules`, and what `--target` means to the other commands: the hardware's rule books on paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import ascend
from ..convert import chosen_tensors
from ..files import open_tensors
from ..formats import format
from ..inspection.casts import SEMANTICS, effect_text
from ..kinds.block import BlockFormat
from ..rounding import Rule
from .output import console, print_json, table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["file_rule", "rules"]


def rules(
    product: str | None, src: str | None, dst: str | None, mode: str | None, saturation: str | None, as_json_text: bool
) -> None:
    """Print the rows of the rule book, and the whole rule of a cast where one is named."""
    if product is not None and ":" in product:
        product = ascend.parse_target(product).name
    rows = ascend.rules(product, src, dst, mode)
    rule = None
    if src is not None and dst is not None:
        of = ascend.DEFAULT_PRODUCT if product is None else product
        rule = ascend.cast_rule(src, dst, "CAST_NONE" if mode is None else mode, of, saturation)
    elif saturation is not None:
        raise ValueError(f"--saturation {saturation} needs --src and --dst: it is about one cast")
    if as_json_text:
        print_json({"rows": [row.as_dict() for row in rows], "cast": None if rule is None else rule.as_dict()})
        return
    screen = console()
    if rule is not None:
        screen.print(rule.explain() + "\n")
    if not rows:
        raise ValueError("no row of the rule book is about that ('bittrue rules' shows all)")
    _print_rows(screen, rows)


def _print_rows(screen: Console, rows: Sequence[ascend.Row]) -> None:
    documents = {row.document: n for n, row in enumerate({row.document: row for row in rows}.values(), 1)}
    by_product: dict[str, list[ascend.Row]] = {}
    for row in rows:
        by_product.setdefault(row.product, []).append(row)
    for product, members in by_product.items():
        asked = members[0].effect
        columns = ["source", "destination", "api", "modes", "default", "what happens", "evidence"]
        if asked is not None:
            columns[3:5] = [asked.requested.name]
        shown = table(*columns, title=product, padding=0)
        shown.columns[3].no_wrap = False
        for row in members:
            if row.effect is None:
                modes = [" ".join(m.short for m in row.modes), row.default.short]
            else:
                modes = [effect_text(row.effect)]
            evidence = f"{row.evidence} [{documents[row.document]}]"
            shown.add_row(row.source, row.destination, row.api, *modes, row.semantics, evidence)
        screen.print(shown)
        screen.print()
    for word in dict.fromkeys(row.semantics for row in rows):
        screen.print(f"{word}: {SEMANTICS.get(word, word)}", style="dim")
    screen.print()
    for document, number in documents.items():
        screen.print(f"[{number}] {document}")


def file_rule(
    source: str,
    target: str,
    mode: str | None,
    saturation: str | None,
    name: str,
    include: Sequence[str],
    exclude: Sequence[str],
    source_format: str | None,
    source_shape: tuple[int, ...] | None,
) -> tuple[Rule, str]:
    """Return the one rule under which a product casts the floating tensors of a file, and a line about it.

    Raises
    ------
    ValueError
        Where the product lacks the cast, where the tensors need different rules, or where a rule does not say all that
        the product does; `bittrue.ascend.cast` knows the rest.
    """
    product = ascend.parse_target(target)
    with open_tensors(source, format=source_format, shape=source_shape, lenient=True) as reader:
        chosen = chosen_tensors(reader, include or None, exclude or None)
        sources = dict.fromkeys(info.format for info in reader.tensors.values() if info.name in chosen)
    blocks = sorted(f.name for f in sources if isinstance(f, BlockFormat))
    if blocks:
        raise ValueError(
            f"{source}: no product casts the block format {blocks[0]}; leave --target out, or its tensors by --exclude"
        )
    asked = "CAST_NONE" if mode is None else mode
    casts = [ascend.cast_rule(f, format(name), asked, product, saturation) for f in sources]
    if not casts:
        return Rule(), f"{product}: no floating tensor to convert"
    for cast in casts:
        if cast.row.semantics in _BEYOND_A_RULE:
            raise ValueError(
                f"{source}: {cast.source} to {cast.destination} on {product} is more than a rounding rule "
                f"({cast.row.semantics}); use bittrue.ascend.cast on its tensors"
            )
    found = {cast.rule for cast in casts}
    if len(found) > 1:
        types = ", ".join(sorted(cast.source.name for cast in casts))
        raise ValueError(f"{source}: its {types} tensors follow different rules on {product}; choose with --include")
    cast = casts[0]
    return cast.rule, f"{product}, {cast.effect.requested.name}: {effect_text(cast.effect)}; {cast.effect.reason}"


#: Semantics of the rule book that `bittrue.ascend.cast` computes with further steps.
_BEYOND_A_RULE = frozenset({"e8m0", "dequant", "round-integral", "complex"})
