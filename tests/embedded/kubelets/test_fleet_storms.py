"""Whatever fails around a fleet: no pod runs twice, none comes back from its end, and all come to theirs."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.fleets import FleetRun, fleet_cluster, machine, pod, statuses
from build.virtual_time import in_virtual_time
from shoal.client.item import Item
from shoal.client.kind import NODES, PODS
from shoal.client.port import Deletion
from shoal.client.refusals import NotFoundError

_TERMINAL = ("Succeeded", "Failed")
_NODES = 3


class _Watcher:
    """Sees every version of every pod, and what may never happen."""

    def __init__(self) -> None:
        self.phase: dict[str, str] = {}
        self.started: dict[tuple[str, int], str] = {}
        self.addresses: dict[str, str] = {}

    def see(self, before: Item | None, after: Item | None) -> None:
        if after is None:
            if before is not None:
                self.addresses.pop(before.uid, None)
            return
        found = after.obj()
        phase = found["status"]["phase"]
        assert self.phase.get(after.uid) not in _TERMINAL or phase == self.phase[after.uid], "it came back"
        self.phase[after.uid] = phase
        address = found["status"].get("podIP")
        if address and phase not in _TERMINAL:
            self.addresses[after.uid] = address
            assert list(self.addresses.values()).count(address) == 1, "two pods of one address"
        elif phase in _TERMINAL:
            self.addresses.pop(after.uid, None)
        for one in statuses(found).values():
            running = one["state"].get("running")
            if running:
                first = self.started.setdefault((after.uid, one["restartCount"]), running["startedAt"])
                assert first == running["startedAt"], "it was started twice"


@settings(max_examples=examples(5), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_storm_makes_a_pod_run_twice_or_come_back(seed: int) -> None:
    in_virtual_time(_storm(random.Random(seed)))


async def _storm(draw: random.Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        machines = [machine(f"node-{at}", gpus=4) for at in range(_NODES)]
        async with fleet_cluster(Path(folder), *machines, seed=draw.getrandbits(16)) as run:
            watcher = _Watcher()
            seen: list[BaseException] = []
            run.cluster.informers.of(PODS).on_change(lambda before, after: _guarded(watcher, before, after, seen))
            await run.cluster.pass_time(1)
            for at in range(12):
                await run.cluster.create(PODS, _some_pod(draw, at))
            for _ in range(15):
                await _disturb(run, draw)
                await run.cluster.pass_time(draw.choice([0.0, 0.1, 1.0, 7.0, 40.0]))
            for at in range(_NODES):
                await run.cluster.patch(NODES, f"node-{at}", {"metadata": {"annotations": {"shoal.dev/fault": None}}})
            await run.cluster.pass_time(3600)
            assert not seen, seen
            left = await run.cluster.pods()
            assert {one["status"]["phase"] for one in left} <= set(_TERMINAL)
            assert not [one for one in left if "deletionTimestamp" in one["metadata"]]
            nodes = [run.fleet.node(name) for name in run.fleet.names()]
            assert all(not node.pods.grants and node.pods.is_quiet() for node in nodes if node is not None)


def _guarded(watcher: _Watcher, before: Item | None, after: Item | None, seen: list[BaseException]) -> None:
    try:
        watcher.see(before, after)
    except AssertionError as error:
        seen.append(error)


def _some_pod(draw: random.Random, at: int) -> dict[str, Any]:
    policy = draw.choice(["Never", "OnFailure"])
    code = draw.choice(["0", "0", "1"]) if policy == "Never" else "0"
    node = f"node-{draw.randrange(_NODES)}"
    run_for = draw.choice(["0s", "2s", "45s", "3m"])
    return pod(f"p-{at}", node, gpus=draw.randrange(3), run_for=run_for, exit_code=code, restartPolicy=policy)


async def _disturb(run: FleetRun, draw: random.Random) -> None:
    node, name = f"node-{draw.randrange(_NODES)}", f"p-{draw.randrange(12)}"
    what = draw.choice(["kill", "fail", "partition", "reboot", "heal", "delete", "force"])
    if what == "kill":
        await run.kill()
        await run.cluster.pass_time(draw.choice([0.05, 1.0, 30.0]))
        run.start()
    elif what in ("delete", "force"):
        try:
            await run.cluster.delete(PODS, name, Deletion(grace_s=0) if what == "force" else None)
        except NotFoundError:
            return
    else:
        fault = None if what == "heal" else json.dumps({"kind": what, "id": str(draw.getrandbits(32))})
        await run.cluster.patch(NODES, node, {"metadata": {"annotations": {"shoal.dev/fault": fault}}})


def test_the_watcher_notices_a_pod_that_comes_back() -> None:
    watcher = _Watcher()
    done, again = (
        Item("default", "p", "u", at, json.dumps({"status": {"phase": phase}}).encode())
        for at, phase in enumerate(("Succeeded", "Running"))
    )
    watcher.see(None, done)
    with pytest.raises(AssertionError, match="it came back"):
        watcher.see(done, again)
