"""One request of one viewer for a page: what is in its address, and what the viewer may see."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from shoal.views.dashboard.facts import DashboardFacts
from shoal.web.viewer import Viewer


class Viewing(Protocol):
    @property
    def query(self) -> Mapping[str, str]: ...

    @property
    def token(self) -> str:
        """Empty where none is needed."""
        ...

    async def viewer(self, namespaces: Collection[str] = ()) -> Viewer:
        """Also of these namespaces, which the facts of the cluster may not have any more."""
        ...

    async def facts(self) -> DashboardFacts:
        """Those that the viewer may see."""
        ...
