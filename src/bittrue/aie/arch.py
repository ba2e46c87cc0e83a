"""AI Engine architectures: their names and numbers; what each one has stands in tables beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ..records import key, records
from ..rounding import suggestion

__all__ = ["DEFAULT_ARCH", "Arch", "arch", "archs"]

#: The document of record (UG1603) is the guide of this architecture.
DEFAULT_ARCH = "aie-ml"


@dataclass(frozen=True)
class Arch:
    """One architecture; rules branch on its properties, never on its name.

    Attributes
    ----------
    name : str
    number : int
        AMD's `__AIE_ARCH__`: 10, 20, 21 or 22.
    aliases : tuple of str
        Other accepted names; case, spaces and punctuation do not matter, the number will do too.
    cascade_bits : int
        Width of the cascade stream (UG1079, UG1603).
    title : str
        What AMD's documents call it.
    """

    name: str
    number: int
    aliases: tuple[str, ...]
    cascade_bits: int
    title: str

    def __str__(self) -> str:
        return self.name


@cache
def archs() -> tuple[Arch, ...]:
    """Return all architectures, oldest first.

    Examples
    --------
    >>> [(a.name, a.number) for a in archs()]
    [('aie', 10), ('aie-ml', 20), ('xdna2', 21), ('aie-mlv2', 22)]
    """
    return tuple(
        Arch(
            row["name"],
            int(row["number"]),
            tuple(row["aliases"].split("|")),
            int(row["cascade_bits"]),
            row["title"],
        )
        for row in records("aie", "architectures")
    )


@cache
def _by_key() -> dict[str, Arch]:
    return {key(name): a for a in archs() for name in (a.name, str(a.number), *a.aliases)}


def arch(name: str | int | Arch = DEFAULT_ARCH) -> Arch:
    """Return the architecture with this name or number.

    Raises
    ------
    ValueError
        For an unknown name, with the list.

    Examples
    --------
    >>> arch("XDNA1").name, arch("aie2p").name, arch(22).name
    ('aie-ml', 'xdna2', 'aie-mlv2')
    """
    if isinstance(name, Arch):
        return name
    found = _by_key().get(key(str(name))) if isinstance(name, (str, int)) else None
    if found is None:
        known = [n for a in archs() for n in (a.name, *a.aliases)]
        raise ValueError(
            f"arch={name!r} is not an AI Engine architecture{suggestion(name, known)} "
            f"({', '.join(a.name for a in archs())})"
        )
    return found
