"""The pods that were created, by workload, hour and broken rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.policy.admission_rules.past import HOUR_MS, CreatedPods
from shoal.store.history.file_tables import open_for_writing
from shoal.store.history.history import UsageHistory
from shoal.store.history.memory_tables import MemoryTables


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


def test_a_namespace_can_be_forgotten_and_old_rows_are_deleted(history: UsageHistory) -> None:
    history.created.add([one(0), one(1, namespace="blue"), one(5 * HOUR_MS)])
    assert history.forget("blue") == 1
    assert {row.namespace for row in history.created.between(0, 9 * HOUR_MS)} == {"red"}
    history.ledger.delete_before(HOUR_MS)
    assert [row.start_ms for row in history.created.between(0, 9 * HOUR_MS)] == [5 * HOUR_MS]
