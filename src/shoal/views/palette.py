"""One colour per policy, the same in pictures and in the terminal, so that a reader learns them once.

Each colour has a shade for light and one for dark ground. They differ in lightness as well as in hue, and every line
is also named where it ends, so nothing hangs on telling red from green.

Rejected: colours by position in the list. The same policy would change its colour from one picture to the next.
"""

from __future__ import annotations

from typing import NamedTuple


class Shade(NamedTuple):
    light: str
    dark: str


_BY_NAME = {
    "Shoal": Shade("#0969da", "#58a6ff"),
    "FGD": Shade("#d9480f", "#ff8f52"),
    "BestFit": Shade("#7c3aed", "#b794f6"),
    "GpuPacking": Shade("#2b8a3e", "#63d17b"),
    "GpuClustering": Shade("#a16207", "#e8c33c"),
    "DotProd": Shade("#c2255c", "#ff7aa8"),
    "Random": Shade("#6b7684", "#9aa5b1"),
}
_SPARE = (Shade("#0b7285", "#4fd1d9"), Shade("#5f3dc4", "#9b8cff"), Shade("#846358", "#c9a99c"))


def shade(name: str) -> Shade:
    """The colour of this policy; a name from elsewhere gets one of a few spare colours, always the same."""
    return _BY_NAME.get(name) or _SPARE[sum(name.encode()) % len(_SPARE)]
