"""Ascend products: their names, what they have, and which data types they support."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ..records import key, records
from ..rounding import suggestion

__all__ = ["DEFAULT_PRODUCT", "Product", "parse_target", "product", "products"]

DEFAULT_PRODUCT = "Ascend 950PR/950DT"


@dataclass(frozen=True)
class Product:
    """One product series and its properties; rules branch on these, never on the name.

    Attributes
    ----------
    name : str
        As in Ascend C's support table (seed: "Built-in data types").
    aliases : tuple of str
        Other accepted names; case, spaces and punctuation do not matter.
    arch : int or None
        NPU architecture number, 3510 or 2201, where documents give one.
    generation : str
        What PyPTO calls it: "A5", "A2A3", or "" where PyPTO does not run.
    control_bits : tuple of int
        Bits of the CTRL register that a kernel can set; none: casts always saturate.
    hf32_bits : int or None
        Fraction bits of HF32 in the matrix unit; None: it has no HF32. (asc-devkit 82b89a15, HF32.md, gives 10 for
        Ascend 950; CANN 8.0, ATC parameter allow_hf32, gives 11, as the picture for the others is said to show.)
    casts : bool
        Whether Ascend C offers Cast at all.
    types : tuple of str
        Supported types in the order of the document of record.
    devkit_types : tuple of str
        Types that the asc-devkit version of the same page adds (open question 1).
    """

    name: str
    aliases: tuple[str, ...]
    arch: int | None
    generation: str
    control_bits: tuple[int, ...]
    hf32_bits: int | None
    casts: bool
    types: tuple[str, ...]
    devkit_types: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


@cache
def products() -> tuple[Product, ...]:
    """Return all products in the order of Ascend C's support table.

    Examples
    --------
    >>> [p.name for p in products()][:3]
    ['Ascend 950PR/950DT', 'Atlas A3', 'Atlas A2']
    """
    return tuple(
        Product(
            name=row["name"],
            aliases=tuple(row["aliases"].split("|")),
            arch=int(row["arch"]) if row["arch"] else None,
            generation=row["generation"],
            control_bits=tuple(map(int, row["control_bits"].split())),
            hf32_bits=int(row["hf32_bits"]) if row["hf32_bits"] else None,
            casts=row["casts"] == "yes",
            types=tuple(row["types"].split()),
            devkit_types=tuple(row["devkit_types"].split()),
        )
        for row in records("ascend", "products")
    )


@cache
def _by_key() -> dict[str, Product]:
    return {key(name): p for p in products() for name in (p.name, *p.aliases)}


def product(name: str | int | Product = DEFAULT_PRODUCT) -> Product:
    """Return the product with this name, chip name or architecture number.

    Raises
    ------
    ValueError
        For an unknown name, with a suggestion and the list.

    Examples
    --------
    >>> product("A5").name, product("Ascend910B").name, product(3510).arch
    ('Ascend 950PR/950DT', 'Atlas A2', 3510)
    """
    if isinstance(name, Product):
        return name
    found = _by_key().get(key(str(name))) if isinstance(name, (str, int)) else None
    if found is None:
        close = suggestion(name, (n.lower() for p in products() for n in (p.name, *p.aliases)))
        raise ValueError(f"product={name!r} is not an Ascend product{close} ({', '.join(p.name for p in products())})")
    return found


def parse_target(target: str) -> Product:
    """Return the product of a command line target: "ascend:950", "ascend:a2"; "ascend" alone is the default product.

    Examples
    --------
    >>> parse_target("ascend:950").name
    'Ascend 950PR/950DT'
    """
    vendor, _, name = target.partition(":")
    if vendor.strip().casefold() != "ascend":
        raise ValueError(f"target={target!r} is not an Ascend target; expected 'ascend:PRODUCT', such as 'ascend:950'")
    return product(name.strip() or DEFAULT_PRODUCT)
