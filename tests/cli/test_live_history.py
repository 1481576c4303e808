"""The history of an object has no Events of an earlier object with its name."""

from __future__ import annotations

import json

from build.manifests import pod
from shoal.api.decode import read
from shoal.cli.live_history import of_present_objects


def _event(uid: str, *, name: str = "p", kind: str = "Pod") -> dict[str, object]:
    about = {"kind": kind, "namespace": "t", "name": name, "uid": uid}
    return {"reason": "Started", "involvedObject": about}


def test_events_of_a_deleted_namesake_are_left_out() -> None:
    present = pod("t/p", 1)
    present["metadata"]["uid"] = "new"
    events = [_event("old"), _event("new"), _event(""), _event("job", kind="Job"), _event("gone", name="q")]
    kept = list(of_present_objects(events, read(json.dumps(present))))
    assert kept == events[1:]
