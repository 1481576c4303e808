"""Names the extra of the distribution that brings a package which is not installed."""

from __future__ import annotations

_EXTRAS = {
    "cel_expr_python": ("cel-expr-python", "scheduler"),
    "cryptography": ("cryptography", "scheduler"),
    "jwt": ("PyJWT", "cluster"),
    "numpy": ("numpy", "scheduler"),
}
"""The package and the extra of each module that the distribution does not install by itself."""


def missing_extra(error: ModuleNotFoundError) -> str:
    """What to say to the user; empty if no extra has the module."""
    module = (error.name or "").partition(".")[0]
    if module not in _EXTRAS:
        return ""
    package, extra = _EXTRAS[module]
    return (
        f"this command needs the Python package {package}, which is not installed; it is in the extra {extra}; install "
        "what every command needs with: pip install 'shoal[all]'"
    )
