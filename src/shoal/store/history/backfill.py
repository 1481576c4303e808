"""Fills a history from snapshots of a cluster: what pods held, as far as the snapshots say it.

Rows that a recorder wrote are exact, and stay; a holding that ended because the recorder was away goes on as long as a
snapshot shows it. Time that the snapshots do not cover stays a gap: what was free then is unknown. Doing it again
changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from shoal.api.cost_budgets import team_of
from shoal.client.item import Item
from shoal.cost.records import DeviceShare, Holding, Machine, Span, Wait
from shoal.store.history.covered_time import Coverage, coverage, distinct_events, end_of, gaps_left, joined
from shoal.store.history.history import UsageHistory
from shoal.store.history.ledger import LedgerChanges, OpenRows
from shoal.store.history.node_rows import NodeDeviceNames, NodeReading, read_node
from shoal.store.history.pod_rows import RecordedPod, holder_of, holding_of, merged, same_but_ended, wait_of
from shoal.store.history.snapshot_files import ClusterSnapshot, PodEvent
from shoal.units.errors import UserError, Where, excerpt, one_line


class Filled(msgspec.Struct, frozen=True, rename="camel"):
    """What was written, and what is still unknown between the first and the last snapshot."""

    snapshots: int
    machines: int
    holdings: int
    waits: int
    from_ms: int
    until_ms: int
    known_ms: int
    unseen_pods: int
    """Pods that only Events name: what they held is unknown."""
    lost_pods: int
    """Pods that ended at an unknown moment between two snapshots."""
    partial: int
    """Snapshots with the pods of one namespace."""


def fill(history: UsageHistory, snapshots: Iterable[ClusterSnapshot]) -> Filled:
    """The caller is the one that writes. Raises UserError for nodes that cannot be read, and for pods on nodes of
    which nothing is known."""
    ordered = sorted(snapshots, key=lambda one: (one.at_ms, one.name))
    first, last = ordered[0].at_ms, ordered[-1].at_ms
    ledger = history.ledger
    recorded, since = ledger.recorded_ms(), ledger.since_ms()
    is_newest = recorded is None or last >= recorded
    known = {one.name: one for one in ledger.machines(first, last + 1)}
    reading = _Reading(known, distinct_events(ordered))
    for one in ordered:
        # A file with pods may be a moment older than the one with their nodes.
        reading.find_names(one)
    for one in ordered:
        reading.read(one)
    covered = coverage(ordered)
    start = first if since is None else min(first, since)
    end = last if recorded is None else max(last, recorded)
    reading.close(end, has_nodes=not is_newest)
    gaps = [Span(start, end)] if recorded is None else ledger.gaps(start, end)
    changes = LedgerChanges(end)
    tables = history.tables
    changes.machines = {uid: row for uid, row in reading.machines.items() if tables.get("machine", uid) is None}
    changes.holdings = _holdings(history, reading.holdings, gaps, end)
    changes.waits = {
        uid: row
        for uid, row in reading.waits.items()
        if tables.get("wait", uid) is None and tables.get("holding", uid) is None
    }
    if recorded is not None and is_newest:
        _end_open_rows(changes, ledger.open(), reading, recorded)
    left = gaps_left(gaps, covered.spans, end)
    ledger.fill(changes, start, left)
    return _filled(ordered, changes, covered, left)


class _Reading:
    """Reads snapshots in the order of their moments."""

    def __init__(self, known: Mapping[str, Machine], events: Mapping[str, Sequence[PodEvent]]) -> None:
        self.machines: dict[str, Machine] = {}
        self.holdings: dict[str, Holding] = {}
        self.waits: dict[str, Wait] = {}
        self._events = events
        self._names = {name: _names_of(one) for name, one in known.items()}
        self._taken: dict[str, dict[str, int]] = {}
        self._seen: dict[str, int] = {}
        """By uid: the last snapshot that had the object."""
        self._open: set[str] = set()
        """The pods that were there when they were looked for last."""
        self.nodes_ms = -1
        """The last snapshot that has the nodes."""
        self._labels: dict[str, Mapping[str, str]] = {}
        self._teams: frozenset[str] = frozenset()
        """Those of namespaces."""

    def find_names(self, snapshot: ClusterSnapshot) -> None:
        for item in snapshot.nodes or ():
            if item.name not in self._names:
                self._names[item.name] = _read_node(item, None, snapshot).names

    def read(self, snapshot: ClusterSnapshot) -> None:
        self._labels.update(snapshot.namespaces)
        self._teams = frozenset(team_of(labels, {}, name) for name, labels in self._labels.items())
        if snapshot.nodes is not None:
            for item in snapshot.nodes:
                found = _read_node(item, self.machines.get(item.uid), snapshot)
                self.machines[item.uid] = found.machine
                self._names[item.name] = found.names
                self._seen[item.uid] = snapshot.at_ms
            self._end_machines(snapshot.at_ms)
            self.nodes_ms = snapshot.at_ms
        if snapshot.pods is not None:
            if snapshot.is_of_all_namespaces:
                self._end_pods(snapshot)
            # Those that have ended give back their devices first.
            for uid, pod in sorted(snapshot.pods.items(), key=lambda one: (not one[1].is_finished, one[0])):
                self._read_pod(uid, pod, snapshot)
                self._seen[uid] = snapshot.at_ms
            self._open.update(snapshot.pods)

    def close(self, end_ms: int, *, has_nodes: bool) -> None:
        """Nothing is known of a pod after the last snapshot that had it. `has_nodes`: nor of a node."""
        for uid, machine in self.machines.items():
            if machine.end_ms is None and has_nodes:
                self.machines[uid] = msgspec.structs.replace(machine, end_ms=max(machine.start_ms, self._seen[uid]))
        for uid, held in self.holdings.items():
            if self._seen[uid] < end_ms:
                self.holdings[uid] = same_but_ended(held, self._seen[uid])
        for uid, wait in self.waits.items():
            if wait.end_ms is None and self._seen[uid] < end_ms:
                self.waits[uid] = msgspec.structs.replace(wait, end_ms=max(wait.start_ms, self._seen[uid]))

    def _end_machines(self, at_ms: int) -> None:
        for uid, machine in self.machines.items():
            if machine.end_ms is None and self._seen[uid] < at_ms:
                self.machines[uid] = msgspec.structs.replace(machine, end_ms=max(machine.start_ms, self._seen[uid]))

    def _end_pods(self, snapshot: ClusterSnapshot) -> None:
        gone = self._open - set(snapshot.pods or {})
        self._open -= gone
        for uid in gone:
            seen = self._seen[uid]
            held, wait = self.holdings.get(uid), self.waits.get(uid)
            if held is not None and held.end_ms is None:
                ended = end_of(self._events.get(uid, ()), seen, snapshot.at_ms)
                self._take(held, -1)
                self.holdings[uid] = same_but_ended(held, seen if ended is None else ended)
            if wait is not None and wait.end_ms is None:
                self.waits[uid] = msgspec.structs.replace(wait, end_ms=max(wait.start_ms, seen))

    def _read_pod(self, uid: str, pod: RecordedPod, snapshot: ClusterSnapshot) -> None:
        holder = holder_of(pod, self._labels.get(pod.metadata.namespace, {}), self._teams)
        if (wait := wait_of(pod, holder, snapshot.at_ms)) is not None:
            before_wait = self.waits.get(uid)
            if before_wait is None or before_wait.end_ms is None:
                self.waits[uid] = wait
        before = self.holdings.get(uid)
        node = pod.spec.node_name
        if not node or (before is not None and before.end_ms is not None):
            return
        names = self._names.get(node)
        if names is None:
            fix = "add what kubectl get nodes -o json writes"
            what = f"the pod {excerpt(pod.metadata.key)} is on the node {excerpt(node)}, which no file has"
            raise UserError(what, where=Where(file=snapshot.name), fix=fix)
        if before is not None:
            self._take(before, -1)
        found = holding_of(pod, holder, names, self._taken.setdefault(node, {}), snapshot.at_ms)
        if found is not None:
            held = self.holdings[uid] = merged(before, found)
            if held.end_ms is None:
                self._take(held, 1)

    def _take(self, held: Holding, sign: int) -> None:
        taken = self._taken.setdefault(held.machine, {})
        for one in held.devices:
            taken[one.device] = taken.get(one.device, 0) + sign * one.share


def _read_node(item: Item, before: Machine | None, snapshot: ClusterSnapshot) -> NodeReading:
    try:
        return read_node(item, before, snapshot.at_ms)
    except (msgspec.DecodeError, ValueError) as error:
        what = f"has a node that cannot be read, {excerpt(item.name)}: {one_line(str(error))}"
        raise UserError(what, where=Where(file=snapshot.name)) from None


def _end_open_rows(changes: LedgerChanges, open_rows: OpenRows, reading: _Reading, recorded_ms: int) -> None:
    """Rows that were open when the history ended: they end as the snapshots say, or are unknown since."""
    for uid, machine in open_rows.machines.items():
        found = reading.machines.get(uid)
        if reading.nodes_ms > recorded_ms and (found is None or found.end_ms is not None):
            end = recorded_ms if found is None or found.end_ms is None else max(recorded_ms, found.end_ms)
            changes.machines[uid] = msgspec.structs.replace(machine, end_ms=max(machine.start_ms, end))
    for uid, held in open_rows.holdings.items():
        shown = reading.holdings.get(uid)
        if shown is None or shown.end_ms is not None:
            end = recorded_ms if shown is None or shown.end_ms is None else max(recorded_ms, shown.end_ms)
            changes.holdings[uid] = same_but_ended(held, end)
    for uid, wait in open_rows.waits.items():
        waited = reading.waits.get(uid)
        if waited is None or waited.end_ms is not None:
            end = recorded_ms if waited is None or waited.end_ms is None else max(recorded_ms, waited.end_ms)
            changes.waits[uid] = msgspec.structs.replace(wait, end_ms=max(wait.start_ms, end))


def _holdings(
    history: UsageHistory, found: Mapping[str, Holding], gaps: Sequence[Span], end_ms: int
) -> dict[str, Holding]:
    """New ones, and those that go on in a gap of the recorder."""
    rows: dict[str, Holding] = {}
    unknown = joined((one.start_ms, end_ms if one.end_ms is None else one.end_ms) for one in gaps)
    for uid, held in found.items():
        stored = history.tables.get("holding", uid)
        if stored is None:
            rows[uid] = held
            continue
        row = msgspec.msgpack.decode(stored.data, type=Holding)
        until = next((end for start, end in unknown if start <= (row.end_ms or -1) <= end), None)
        if row.end_ms is None or until is None:
            continue  # It is open, or has ended while it was recorded.
        if held.end_ms is None and until == end_ms:
            rows[uid] = msgspec.structs.replace(row, end_ms=None)
        elif (end := until if held.end_ms is None else min(held.end_ms, until)) > row.end_ms:
            rows[uid] = msgspec.structs.replace(row, end_ms=end)
    return rows


def _names_of(machine: Machine) -> NodeDeviceNames:
    return NodeDeviceNames(machine.devices, {device: DeviceShare(device) for device in machine.devices})


def _filled(
    ordered: Sequence[ClusterSnapshot], changes: LedgerChanges, covered: Coverage, left: Sequence[Span]
) -> Filled:
    first, last = ordered[0].at_ms, ordered[-1].at_ms
    unknown = sum(
        max(0, min(last, last if one.end_ms is None else one.end_ms) - max(first, one.start_ms)) for one in left
    )
    return Filled(
        snapshots=len(ordered),
        machines=len(changes.machines),
        holdings=len(changes.holdings),
        waits=len(changes.waits),
        from_ms=first,
        until_ms=last,
        known_ms=last - first - unknown,
        unseen_pods=covered.unseen,
        lost_pods=covered.lost,
        partial=sum(1 for one in ordered if one.pods and not one.is_of_all_namespaces),
    )
