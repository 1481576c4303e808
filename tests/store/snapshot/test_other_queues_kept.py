"""Queues of Volcano and KAI in a picture of a cluster: what they may take stays in it."""

from __future__ import annotations

from typing import Any

from build.manifests import Object, thing
from shoal.store.snapshot.redaction import redacted


def test_what_a_volcano_queue_may_take_is_kept() -> None:
    spec = {
        "parent": "root",
        "dequeueStrategy": "fifo",
        "capability": {"nvidia.com/gpu": "8", "cpu": "100"},
        "deserved": {"nvidia.com/gpu": "4"},
        "guarantee": {"resource": {"nvidia.com/gpu": "2"}},
    }
    queue: Object = thing("scheduling.volcano.sh/v1beta1", "Queue", "q", spec=spec, status={"state": "Open"})
    kept: Any = redacted(queue)
    assert kept["spec"] == spec
    assert kept["status"] == {"state": "Open"}


def test_what_a_kai_queue_may_take_is_kept() -> None:
    spec = {"parentQueue": "all", "displayName": "hunter2", "resources": {"gpu": {"quota": 4, "limit": -1}}}
    kept: Any = redacted(thing("scheduling.run.ai/v2", "Queue", "q", spec=spec))
    assert kept["spec"] == {"parentQueue": "all", "resources": {"gpu": {"quota": 4, "limit": -1}}}
