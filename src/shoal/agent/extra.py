"""Names the extra of the package that is missing where a part of the agent cannot be imported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shoal.units.errors import UserError

_PACKAGES = {"grpc": "grpcio", "google": "protobuf"}


@contextmanager
def extra_named() -> Iterator[None]:
    """Raises `UserError` where an import inside needs a package of the extra `agent`."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = _PACKAGES.get((error.name or "").partition(".")[0])
        if package is None:
            raise
        raise UserError(
            f"the Python package {package} is not installed", fix="install it with: pip install 'shoal[agent]'"
        ) from error
