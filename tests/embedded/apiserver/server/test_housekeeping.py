"""What the server does by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.embedded.apiserver.resource import Home, Obj
from shoal.embedded.apiserver.rest.creating import creation
from shoal.embedded.apiserver.server.control_plane import ControlPlane, open_plane
from shoal.embedded.apiserver.server.housekeeping import Housekeeping
from shoal.embedded.apiserver.settings import Settings

EVENTS = Home("", "events")


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    opened = await open_plane(Settings(None, tmp_path / "kubeconfig"), ("127.0.0.1", 1))
    yield opened
    await opened.close()


def event(name: str, **fields: object) -> Obj:
    return {"kind": "Event", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default"}, **fields}


async def store(plane: ControlPlane, obj: Obj) -> None:
    resource = plane.context.catalog.builtin(EVENTS)
    ref = resource.ref("default", obj["metadata"]["name"])
    await plane.context.state.commit([creation(plane.context, ref, obj)])


async def test_an_event_that_nobody_touched_for_an_hour_goes_and_newer_ones_stay(plane: ControlPlane) -> None:
    await store(plane, event("old", lastTimestamp="2020-01-01T00:00:00Z"))
    await store(plane, event("again", series={"lastObservedTime": "2020-01-01T00:00:00.000000Z"}))
    await store(plane, event("new"))
    await Housekeeping(plane.context).drop_old_events()
    left = {record.ref.name for record in plane.context.state.list(EVENTS, "default").records}
    assert left == {"new"}
