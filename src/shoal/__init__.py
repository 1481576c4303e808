"""Schedules GPUs for Kubernetes; importing the package imports nothing else, so that every command starts fast."""

__version__: str
"""The version of the installed distribution, `0+source` without one. It is looked up when it is read."""


def __getattr__(name: str) -> str:
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("shoal")
    except PackageNotFoundError:
        return "0+source"
