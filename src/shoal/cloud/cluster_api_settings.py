"""The settings of Cluster API as a cloud."""

from __future__ import annotations

import msgspec


class ClusterApiSettings(msgspec.Struct, frozen=True):
    cluster: str
    """The name of the Cluster object."""
    namespace: str
    """That of the Cluster object."""
