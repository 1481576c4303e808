"""The pods that were created, by workload, hour and broken rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from shoal.policy.admission_rules.past import HOUR_MS, CreatedPods
from shoal.store.history.file_tables import open_for_writing
from shoal.store.history.history import UsageHistory
from shoal.store.history.memory_tables import MemoryTables
from shoal.store.history.tables import StoredRow


@pytest.fixture(params=["memory", "file"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[UsageHistory]:
    found = UsageHistory(MemoryTables() if request.param == "memory" else open_for_writing(tmp_path))
    yield found
    found.close()


def one(at_ms: int, name: str = "train", *rules: str, namespace: str = "red") -> CreatedPods:
    return CreatedPods(namespace, "Job", name, at_ms, at_ms + 1, 1, rules)


def test_pods_of_a_workload_are_one_row_for_each_hour_and_set_of_rules(history: UsageHistory) -> None:
    history.created.add([one(0), one(5), one(7, "train", "SHL-352")])
    history.created.add([one(9), one(HOUR_MS + 1)])
    assert history.created.between(0, 2 * HOUR_MS) == [
        CreatedPods("red", "Job", "train", 0, 10, 3),
        CreatedPods("red", "Job", "train", 7, 8, 1, ("SHL-352",)),
        CreatedPods("red", "Job", "train", HOUR_MS + 1, HOUR_MS + 2, 1),
    ]


def test_a_window_has_the_hours_in_which_a_pod_was_created(history: UsageHistory) -> None:
    history.created.add([one(0), one(3 * HOUR_MS, "later", "SHL-352", "SHL-353")])
    (found,) = history.created.between(HOUR_MS, 4 * HOUR_MS)
    assert (found.name, found.rules) == ("later", ("SHL-352", "SHL-353"))


def test_owners_of_any_kind_and_name_are_recorded_and_kept_apart(history: UsageHistory) -> None:
    kinds = [("a b", "c"), ("a", "b c"), ("a,b", ""), ("\x1f\ud7ff", "x" * 5000)]
    created = [CreatedPods("red", kind, name, 0, 1, 1, ("SHL-352",)) for kind, name in kinds]
    history.created.add(created)
    history.created.add(created)
    found = history.created.between(0, HOUR_MS)
    assert sorted((row.kind, row.name, row.pods) for row in found) == sorted((*one, 2) for one in kinds)
    assert all(len(row.key) < 40 for row in history.tables.overlapping("created", 0, HOUR_MS))


def test_a_row_that_cannot_be_read_is_left_out(history: UsageHistory) -> None:
    history.tables.put("created", [StoredRow("0 red a b c SHL-352", 0, 1, "red", msgspec.msgpack.encode(3))])
    history.created.add([one(5)])
    assert [row.pods for row in history.created.between(0, HOUR_MS)] == [1]
    assert history.created.since_ms() == 5


def test_a_namespace_can_be_forgotten_and_old_rows_are_deleted(history: UsageHistory) -> None:
    history.created.add([one(0), one(1, namespace="blue"), one(5 * HOUR_MS)])
    assert history.forget("blue") == 1
    assert {row.namespace for row in history.created.between(0, 9 * HOUR_MS)} == {"red"}
    history.ledger.delete_before(HOUR_MS)
    assert [row.start_ms for row in history.created.between(0, 9 * HOUR_MS)] == [5 * HOUR_MS]
