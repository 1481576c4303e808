"""A history from snapshots: what it says was held was held, and what it says was free was free."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from build.depth import examples
from shoal.cost.prices.price_file import MachinePrice, PriceFile
from shoal.cost.records import DeviceShare, Holder, Holding, Machine, Span
from shoal.cost.report import PriceBasis, cost_report
from shoal.cost.statement import dimension, whole_period
from shoal.store.history.backfill import fill
from shoal.store.history.history import UsageHistory
from shoal.store.history.ledger import LedgerChanges
from shoal.store.history.memory_tables import MemoryTables
from shoal.store.history.snapshot_files import ClusterSnapshot, read_snapshot
from shoal.units.calendar_windows import HOUR_MS, TimeWindow, rfc3339
from shoal.units.errors import UserError, Where

START = 1_790_812_800_000
MINUTE_MS = 60_000
NOW_MS = START + 30 * 24 * HOUR_MS
DEVICES = [f"n{node}/{gpu}" for node in range(2) for gpu in range(3)]
TTL_MS = HOUR_MS
EVERY_MS = 5 * MINUTE_MS
"""Something else in the cluster has an Event as often."""


class TruePod(NamedTuple):
    uid: str
    namespace: str
    device: str
    bound_ms: int
    end_ms: int
    killed_ms: int | None
    """When it was told to end; None: it ended by itself."""
    gone_ms: int
    """When its object was removed."""
    restarted_ms: int | None = None

    @property
    def has_gpu(self) -> bool:
        return self.device in DEVICES


def _pod(one: TruePod, at_ms: int) -> dict[str, Any]:
    is_bound, is_done = one.bound_ms <= at_ms, one.end_ms <= at_ms
    node = one.device.partition("/")[0]
    resource = {"name": "nvidia.com/gpu", "resources": [{"resourceID": one.device, "health": "Healthy"}]}
    ended = {"terminated": {"startedAt": rfc3339(one.bound_ms), "finishedAt": rfc3339(one.end_ms), "exitCode": 0}}
    running = {"running": {"startedAt": rfc3339(one.bound_ms)}}
    state = {
        "name": "c",
        "state": ended if is_done else running,
        "allocatedResourcesStatus": [resource] if one.has_gpu else [],
    }
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": rfc3339(one.bound_ms)}
    return {
        "kind": "Pod",
        "metadata": {
            "name": one.uid,
            "namespace": one.namespace,
            "uid": one.uid,
            "creationTimestamp": rfc3339(one.bound_ms - MINUTE_MS),
        },
        "spec": {
            **({"nodeName": node} if is_bound else {}),
            "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}} if one.has_gpu else {}}],
        },
        "status": {
            "phase": "Succeeded" if is_done else "Running" if is_bound else "Pending",
            **({"conditions": [condition], "containerStatuses": [state]} if is_bound else {}),
        },
    }


def _node(name: str) -> dict[str, Any]:
    amounts = {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "3", "pods": "110"}
    created = rfc3339(START - HOUR_MS)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": created, "lastHeartbeatTime": rfc3339(START)}
    labels = {"node.kubernetes.io/instance-type": "three", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    meta = {"name": name, "uid": name, "creationTimestamp": created, "labels": labels}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    return {"kind": "Node", "metadata": meta, "status": status}


def _event(one: TruePod, reason: str, at_ms: int, message: str = "") -> dict[str, Any]:
    about = {"kind": "Pod" if one.namespace else "Node", "namespace": one.namespace, "name": one.uid, "uid": one.uid}
    meta = {"name": f"{one.uid}.{reason}.{at_ms}", "namespace": one.namespace, "creationTimestamp": rfc3339(at_ms)}
    times = {"firstTimestamp": rfc3339(at_ms), "lastTimestamp": rfc3339(at_ms), "eventTime": None}
    return {"kind": "Event", "metadata": meta, "involvedObject": about, "reason": reason, "message": message, **times}


def _events(pods: list[TruePod]) -> list[tuple[int, dict[str, Any]]]:
    found = []
    for one in pods:
        found.append((one.bound_ms, _event(one, "Scheduled", one.bound_ms)))
        if one.restarted_ms is not None:
            words = "Container c failed liveness probe, will be restarted"
            found.append((one.restarted_ms, _event(one, "Killing", one.restarted_ms, words)))
        if one.killed_ms is not None:
            found.append((one.killed_ms, _event(one, "Killing", one.killed_ms, "Stopping container c")))
    return found


def _history_of(draw: Random) -> list[TruePod]:
    """Pods after each other on every device, for six hours."""
    pods = []
    for device in DEVICES:
        at, number = draw.randrange(0, HOUR_MS, 1000), 0
        while at < 6 * HOUR_MS:
            length = draw.choice([3 * MINUTE_MS, 20 * MINUTE_MS, 2 * HOUR_MS, 5 * HOUR_MS])
            end = at + draw.randrange(MINUTE_MS, length, 1000)
            is_killed = draw.random() < 0.5
            killed = max(at, end - draw.randrange(0, 30_000, 1000)) if is_killed else None
            gone = end + (0 if is_killed or draw.random() < 0.5 else draw.randrange(0, HOUR_MS, 1000))
            restarted = at + (end - at) // 2000 * 1000 if draw.random() < 0.2 else None
            moments = [None if one is None else START + one for one in (at, end, killed, gone, restarted)]
            bound, ended, told, removed, again = moments
            assert bound is not None
            assert ended is not None
            assert removed is not None
            uid = f"{device.replace('/', '-')}-{number}"
            pods.append(TruePod(uid, draw.choice("ab"), device, bound, ended, told, removed, again))
            at, number = end + draw.choice([0, 1000, 10 * MINUTE_MS, HOUR_MS]), number + 1
    return pods


def _snapshot(folder: Path, at_ms: int, pods: list[TruePod], kinds: str) -> ClusterSnapshot:
    items: list[dict[str, Any]] = [_node(f"n{number}") for number in range(2)] if "n" in kinds else []
    present = [one for one in pods if one.bound_ms - MINUTE_MS <= at_ms < one.gone_ms]
    if "p" in kinds:
        agent = TruePod("agent", "kube-system", "n0/none", START, START + 99 * HOUR_MS, None, START + 99 * HOUR_MS)
        items += [_pod(one, at_ms) for one in present] + [_pod(agent, at_ms)]
    if "o" in kinds:
        items += [_pod(one, at_ms) for one in present if one.namespace == "a"]
    if "e" in kinds:
        items += [event for at, event in _events(pods) if at_ms - TTL_MS <= at <= at_ms]
        others = TruePod("node", "", "", 0, 0, None, 0)
        first = -(-(at_ms - TTL_MS) // EVERY_MS) * EVERY_MS
        items += [_event(others, "Other", at) for at in range(first, at_ms + 1, EVERY_MS)]
    # kubectl shows an empty list where there are no Events.
    items = items or [_node("n0"), _node("n1")]
    path = folder / f"{rfc3339(at_ms)}-{kinds}.json"
    path.write_text(json.dumps({"kind": "List", "items": items}))
    return read_snapshot(path, NOW_MS)


def _snapshots(folder: Path, draw: Random, pods: list[TruePod]) -> list[ClusterSnapshot]:
    moments = sorted(draw.sample(range(0, 7 * HOUR_MS, 1000), draw.randint(2, 16)))
    kinds = ["pne", "pne", "pe", "p", "e", "oe", "on"]
    first = [_snapshot(folder, START + moments[0], pods, "pne")]
    return first + [_snapshot(folder, START + at, pods, draw.choice(kinds)) for at in moments[1:]]


def _check(history: UsageHistory, pods: list[TruePod], end_ms: int) -> int:
    """The number of moments at which a device is known to be free."""
    ledger, known = history.ledger, 0
    holdings = ledger.holdings(START - HOUR_MS, end_ms)
    gaps = ledger.gaps(START, end_ms)
    truth = {device: [one for one in pods if one.device == device] for device in DEVICES}
    for at in range(START, end_ms, 97_000):
        is_unknown = any(one.start_ms <= at and (one.end_ms is None or at < one.end_ms) for one in gaps)
        for device in DEVICES:
            really = next((one.uid for one in truth[device] if one.bound_ms <= at < one.end_ms), None)
            told = [uid for uid, row in holdings.items() if _holds(row, device, at)]
            assert len(told) < 2, (at, told)
            if told:
                assert told == [really], (rfc3339(at), told, really)
            elif not is_unknown:
                known += 1
                assert really is None, (rfc3339(at), really)
    return known


def _holds(row: Holding, device: str, at_ms: int) -> bool:
    is_then = row.start_ms <= at_ms and (row.end_ms is None or at_ms < row.end_ms)
    return is_then and any(one.device == device for one in row.devices)


@pytest.mark.parametrize("seed", range(examples(6)))
def test_what_is_said_to_be_held_was_held_and_what_is_said_to_be_free_was_free(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    pods = _history_of(draw)
    snapshots = _snapshots(tmp_path, draw, pods)
    end = max(one.at_ms for one in snapshots)
    at_once = UsageHistory(MemoryTables())
    fill(at_once, draw.sample(snapshots, len(snapshots)))
    _check(at_once, pods, end)
    before = _rows(at_once)
    fill(at_once, snapshots)
    assert _rows(at_once) == before
    step_by_step = UsageHistory(MemoryTables())
    cut = draw.randint(1, len(snapshots) - 1)
    fill(step_by_step, snapshots[:cut])
    _check(step_by_step, pods, snapshots[cut - 1].at_ms)
    fill(step_by_step, snapshots[cut:])
    _check(step_by_step, pods, end)
    for history in (at_once, step_by_step):
        _adds_up(history, end)


def _adds_up(history: UsageHistory, end_ms: int) -> None:
    window = TimeWindow(START, end_ms + HOUR_MS)
    records = history.records(window.start_ms, window.end_ms)
    prices = PriceFile(machines=(MachinePrice(instance_type="three", per_hour=Decimal("9.99")),))
    basis = PriceBasis(prices, Where(), date(2026, 10, 1))
    report = cost_report(records, whole_period(window), dimension("namespace"), basis)
    assert sum((row.amount for row in report.rows), Decimal(0)).quantize(Decimal("0.01")) == report.invoice
    assert report.invoice == (Decimal("9.99") * 2 * window.length_ms / HOUR_MS).quantize(Decimal("0.01"))
    kinds = {row.kind for row in report.rows}
    assert "unknown" in kinds
    assert "allocated-idle" not in kinds


def _rows(history: UsageHistory) -> list[object]:
    tables = history.tables
    return [list(tables.overlapping(name, 0, 1 << 60)) for name in ("machine", "holding", "wait", "gap")]


def _truth(uid: str, device: str, first: int, end: int, killed: int | None = None, namespace: str = "a") -> TruePod:
    bound, ended = (START + one * MINUTE_MS for one in (first, end))
    return TruePod(uid, namespace, device, bound, ended, None if killed is None else START + killed * MINUTE_MS, ended)


def _gaps(history: UsageHistory, end: int) -> list[tuple[int, int]]:
    found = history.ledger.gaps(START, START + end * MINUTE_MS)
    return [((one.start_ms - START) // MINUTE_MS, ((one.end_ms or 0) - START) // MINUTE_MS) for one in found]


def test_snapshots_with_events_every_half_an_hour_leave_nothing_unknown(tmp_path: Path) -> None:
    pods = [_truth("one", "n0/0", 10, 50, 50), _truth("two", "n0/1", 40, 400)]
    snapshots = [_snapshot(tmp_path, START + at * MINUTE_MS, pods, "pne") for at in range(0, 121, 30)]
    history = UsageHistory(MemoryTables())
    filled = fill(history, snapshots)
    assert (filled.holdings, filled.machines, filled.unseen_pods, filled.lost_pods) == (3, 2, 0, 0)
    # For its grace period it is not known whether the pod that was told to end still held its GPU.
    assert _gaps(history, 120) == [(50, 50)]
    assert filled.known_ms == 2 * HOUR_MS - 40_000
    assert _check(history, pods, START + 2 * HOUR_MS) > 300
    found = history.ledger.holdings(START, START + 2 * HOUR_MS)
    assert found["one"].end_ms == START + 50 * MINUTE_MS
    assert found["two"].end_ms is None


def test_between_snapshots_without_events_what_is_free_is_unknown(tmp_path: Path) -> None:
    pods = [_truth("one", "n0/0", -10, 400)]
    snapshots = [_snapshot(tmp_path, START + at * MINUTE_MS, pods, "pn") for at in (0, 30, 60)]
    history = UsageHistory(MemoryTables())
    assert fill(history, snapshots).known_ms == 0
    assert _gaps(history, 60) == [(0, 60)]
    assert history.ledger.holdings(START, START + HOUR_MS)["one"].end_ms is None


def test_a_pod_that_only_events_name_makes_the_time_unknown(tmp_path: Path) -> None:
    pods = [_truth("short", "n0/0", 40, 45, 45)]
    snapshots = [_snapshot(tmp_path, START + at * MINUTE_MS, pods, "pne") for at in (0, 30, 60, 90)]
    history = UsageHistory(MemoryTables())
    assert fill(history, snapshots).unseen_pods == 1
    assert _gaps(history, 90) == [(40, 60)]


def test_rows_of_the_recorder_stay_and_go_on_in_its_gap(tmp_path: Path) -> None:
    pods = [_truth("kept", "n0/0", -10, 400), _truth("other", "n0/1", 10, 15, 15)]
    history = UsageHistory(MemoryTables())
    machines = {name: Machine(name, START - HOUR_MS, None, devices=tuple(DEVICES)) for name in ("n0", "n1")}
    # The recorder stopped at 20 minutes, and found the pod gone when it started again at 100.
    rows = {
        uid: Holding(Holder(uid, "a", team="exact"), "n0", START, START, START + 20 * MINUTE_MS, (DeviceShare(device),))
        for uid, device in (("kept", "n0/0"), ("forgotten", "n0/2"))
    }
    rows["other"] = Holding(Holder("other", "a"), "n0", START + 1, None, START + 2, (DeviceShare("n0/1"),))
    history.ledger.write(LedgerChanges(START, machines))
    gap = Span(START + 20 * MINUTE_MS, START + 100 * MINUTE_MS)
    history.ledger.write(LedgerChanges(START + 100 * MINUTE_MS, {}, rows, gap=gap))
    snapshots = [_snapshot(tmp_path, START + at * MINUTE_MS, pods, "pne") for at in (12, 40, 70)]
    fill(history, snapshots)
    found = history.ledger.holdings(START, START + HOUR_MS * 2)
    assert (found["kept"].holder.team, found["kept"].end_ms) == ("exact", START + 70 * MINUTE_MS)
    assert found["other"] == rows["other"]
    assert found["forgotten"] == rows["forgotten"]
    assert _gaps(history, 100) == [(70, 100)]
    assert history.ledger.recorded_ms() == START + 100 * MINUTE_MS


def test_what_was_removed_of_a_namespace_does_not_come_back(tmp_path: Path) -> None:
    pods = [_truth("one", "n0/0", -10, 400)]
    snapshots = [_snapshot(tmp_path, START + at * MINUTE_MS, pods, "pne") for at in (0, 30)]
    history = UsageHistory(MemoryTables())
    fill(history, snapshots)
    history.forget("a")
    before = _rows(history)
    fill(history, snapshots)
    assert _rows(history) == before
    assert history.ledger.holdings(START, START + HOUR_MS)["one"].holder.pod == ""


def test_files_of_one_namespace_say_nothing_of_others(tmp_path: Path) -> None:
    pods = [_truth("one", "n0/0", -10, 400), _truth("hidden", "n0/1", -10, 400, namespace="b")]
    snapshots = [_snapshot(tmp_path, START + at * MINUTE_MS, pods, "one") for at in (0, 30)]
    history = UsageHistory(MemoryTables())
    assert fill(history, snapshots).partial == 2
    assert _gaps(history, 30) == [(0, 30)]
    complete = [read_snapshot(Path(one.name), NOW_MS, is_complete=True) for one in snapshots]
    told = UsageHistory(MemoryTables())
    assert fill(told, complete).partial == 0
    assert _gaps(told, 30) == []
    assert set(history.ledger.holdings(START, START + HOUR_MS)) == {"one"}


def test_a_pod_on_a_node_that_no_file_has_is_named(tmp_path: Path) -> None:
    snapshot = _snapshot(tmp_path, START, [_truth("one", "n0/0", -10, 400)], "p")
    with pytest.raises(UserError, match='is on the node "n0", which no file has'):
        fill(UsageHistory(MemoryTables()), [snapshot])


WRONG = {
    "no JSON": ("a.json", "kind: List", "is no list of objects as JSON"),
    "one object": ("a.json", '{"kind": "Pod", "metadata": {}}', "has no items"),
    "an empty list": ("a.json", '{"kind": "List", "items": []}', "has no pods, nodes or events"),
    "items of another form": ("a.json", '{"kind": "List", "items": [3]}', r"items\[0\]: is no object"),
    "a pod of another form": (
        "a.json",
        '{"items": [{"kind": "Pod", "metadata": {"name": 3}}]}',
        "has an object that cannot be read",
    ),
    "a moment before its objects": (
        "2026-10-01T00:00:00Z.json",
        '{"items": [{"kind": "Node", "metadata": {"name": "n", "creationTimestamp": "2026-10-01T00:01:00Z"}}]}',
        "changed later than the moment in its name, 60 s",
    ),
    "a moment in the future": (
        "2999-01-01T00:00:00Z.json",
        '{"items": [{"kind": "Node", "metadata": {"name": "n"}}]}',
        "is of a moment that has not come yet, 2999-01-01T00:00:00Z",
    ),
    "an object from the future": (
        "a.json",
        '{"items": [{"kind": "Node", "metadata": {"name": "n", "creationTimestamp": "2999-01-01T00:00:00Z"}}]}',
        "is of a moment that has not come yet",
    ),
    "a name that is no moment": (
        "2026-13-01T00:00:00Z.json",
        '{"items": [{"kind": "Node", "metadata": {"name": "n"}}]}',
        "has no moment in its name",
    ),
}


@pytest.mark.parametrize(("name", "text", "said"), WRONG.values(), ids=WRONG.keys())
def test_a_file_that_is_wrong_is_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=said) as raised:
        read_snapshot(tmp_path / name, NOW_MS)
    assert name in str(raised.value)


def test_a_node_that_cannot_be_read_is_named_with_its_file(tmp_path: Path) -> None:
    node = {"kind": "Node", "metadata": {"name": "odd", "uid": "u"}, "status": {"capacity": {"cpu": "many"}}}
    path = tmp_path / "2026-10-01T00:00:00Z.json"
    path.write_text(json.dumps({"items": [node]}))
    with pytest.raises(UserError, match='has a node that cannot be read, "odd": ') as raised:
        fill(UsageHistory(MemoryTables()), [read_snapshot(path, NOW_MS)])
    assert path.name in str(raised.value)


def test_without_a_moment_in_its_name_a_file_is_of_the_latest_that_it_names(tmp_path: Path) -> None:
    items = [_node("n0"), _pod(_truth("one", "n0/0", 5, 400), START + 9 * MINUTE_MS)]
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "List", "items": items}))
    assert read_snapshot(tmp_path / "pods.json", NOW_MS).at_ms == START + 5 * MINUTE_MS


def test_a_container_that_is_started_again_is_not_the_end_of_its_pod(tmp_path: Path) -> None:
    restarted = START + 10 * MINUTE_MS
    pods = [_truth("one", "n0/0", -10, 40)._replace(restarted_ms=restarted)]
    snapshots = [_snapshot(tmp_path, START + at * MINUTE_MS, pods, "pne") for at in (0, 60)]
    history = UsageHistory(MemoryTables())
    assert fill(history, snapshots).lost_pods == 1
    assert _gaps(history, 60) == [(0, 60)]
    assert history.ledger.holdings(START - HOUR_MS, START)["one"].end_ms == START


def test_the_label_of_a_pod_names_no_team_of_a_namespace(tmp_path: Path) -> None:
    items: list[dict[str, Any]] = [{"kind": "Namespace", "metadata": {"name": "b", "labels": {"team": "red"}}}]
    for uid, team in (("one", "red"), ("two", "other")):
        pod = _pod(_truth(uid, "n0/0", -10, 400), START)
        pod["metadata"]["labels"] = {"team": team}
        items.append(pod)
    path = tmp_path / f"{rfc3339(START)}.json"
    path.write_text(json.dumps({"kind": "List", "items": [_node("n0"), *items]}))
    history = UsageHistory(MemoryTables())
    fill(history, [read_snapshot(path, NOW_MS)])
    found = history.ledger.holdings(START - HOUR_MS, START + HOUR_MS)
    assert {uid: one.holder.team for uid, one in found.items()} == {"one": "a", "two": "other"}
