"""Reads `--cloud`: how the simulated cloud behaves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.embedded.cloud.settings import CloudSettings

_MOST_BYTES = 1 << 20


def cloud_of_file(path: str) -> CloudSettings:
    """The settings of the file; the usual ones without a file."""
    from shoal.api.files import read_whole
    from shoal.api.yaml_text import read_yaml
    from shoal.embedded.cloud.settings import CloudSettings, cloud_settings

    if not path:
        return CloudSettings()
    documents = list(read_yaml(read_whole(Path(path).expanduser(), _MOST_BYTES).decode(), path))
    if len(documents) > 1:
        raise UserError("has more than one document", where=Where(file=path), fix="keep the one of the cloud")
    return cloud_settings(documents[0][1] if documents else None, Where(file=path))
