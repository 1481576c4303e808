"""Nominal quotas over time, from what was recorded of queues and namespaces, and who left how much of them."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from shoal.client.item import item_of
from shoal.cost.quota_hours import quota_dimension, quota_hours
from shoal.cost.records import FULL_SHARE, Holder, Holding, Machine, QuotaKind, QuotaSpan
from shoal.store.history.history import UsageHistory
from shoal.store.history.ledger import LedgerChanges
from shoal.store.history.memory_tables import MemoryTables
from shoal.store.history.quota_rows import gpu_quota
from shoal.units.calendar_windows import HOUR_MS, TimeWindow

DAY = TimeWindow(0, 24 * HOUR_MS)


@pytest.fixture
def history() -> Iterator[UsageHistory]:
    made = UsageHistory(MemoryTables())
    yield made
    made.close()


def _quota(name: str, gpus: int, *members: str, kind: QuotaKind = "cluster-queue", parent: str = "") -> QuotaSpan:
    return QuotaSpan(kind, name, 0, None, gpus * FULL_SHARE, parent, members)


def test_a_quota_counts_for_the_hours_in_which_it_was_so_much(history: UsageHistory) -> None:
    history.quotas.write("cluster-queue", [_quota("a", 4)], 0)
    history.quotas.write("cluster-queue", [_quota("a", 4)], HOUR_MS)
    history.quotas.write("cluster-queue", [_quota("a", 8)], 6 * HOUR_MS)
    history.quotas.write("kai", [_quota("k", 1, kind="kai")], 6 * HOUR_MS)
    history.quotas.write("cluster-queue", [], 12 * HOUR_MS)
    spans = history.quotas.read(0, 24 * HOUR_MS)
    assert [(one.name, one.start_ms // HOUR_MS, one.end_ms) for one in spans] == [
        ("a", 0, 6 * HOUR_MS),
        ("a", 6, 12 * HOUR_MS),
        ("k", 6, None),
    ]
    assert quota_hours(spans, DAY, "queue") == {"a": 4 * 6 + 8 * 6, "k": 18}
    assert quota_hours(spans, TimeWindow(0, 3 * HOUR_MS), "queue") == {"a": 12}
    assert not quota_hours(spans, DAY, "namespace")


def test_only_the_lowest_queues_and_namespaces_of_their_own_hold_quota() -> None:
    spans = [
        _quota("department", 8, kind="kai"),
        _quota("team", 3, kind="kai", parent="department"),
        _quota("department", 1, kind="volcano", parent="root"),
        _quota("lab", 2, kind="namespace"),
    ]
    assert quota_hours(spans, DAY, "queue") == {"team": 72, "department": 24}
    assert quota_hours(spans, DAY, "namespace") == {"lab": 48}


def test_the_work_of_a_local_queue_uses_the_quota_of_its_cluster_queue(history: UsageHistory) -> None:
    history.quotas.write("cluster-queue", [_quota("gold", 4, "lab/main"), _quota("iron", 4, "shop/main")], 0)
    # The next recorder has not seen all work yet; a LocalQueue that was moved is of its new queue.
    history.quotas.write("cluster-queue", [_quota("gold", 4), _quota("iron", 4, "shop/main", "new/main")], HOUR_MS)
    group = quota_dimension(history.quotas.read(0, 24 * HOUR_MS), "queue")
    found = [group(Holding(Holder("p", where, queue="main"), "m", 0), Machine("m", 0)) for where in ("lab", "new", "x")]
    assert found == ["gold", "iron", "main"]
    assert group(None, Machine("m", 0)) == ""
    history.ledger.write(LedgerChanges(HOUR_MS))
    history.ledger.forget("lab")
    assert {one.name: one.members for one in history.quotas.read(0, DAY.end_ms)} == {
        "gold": (),
        "iron": ("new/main", "shop/main"),
    }


@pytest.mark.parametrize(
    ("kind", "spec", "gpus", "parent"),
    [
        ("kai", {"parentQueue": "all", "resources": {"gpu": {"quota": 1.5}}}, "1.5", "all"),
        ("kai", {"resources": {"gpu": {"quota": -1}}}, None, ""),
        ("volcano", {"parent": "root", "deserved": {"nvidia.com/gpu": "3"}}, "3", "root"),
        ("volcano", {"deserved": {"cpu": "3"}}, None, ""),
        ("namespace", {"hard": {"requests.nvidia.com/gpu": "4", "requests.cpu": "9"}}, "4", ""),
        ("namespace", {"hard": {"requests.nvidia.com/gpu": "4"}, "scopes": ["BestEffort"]}, None, ""),
        (
            "cluster-queue",
            {
                "resourceGroups": [
                    {
                        "coveredResources": ["nvidia.com/gpu", "cpu"],
                        "flavors": [
                            {
                                "name": name,
                                "resources": [
                                    {"name": "nvidia.com/gpu", "nominalQuota": 2},
                                    {"name": "cpu", "nominalQuota": 99},
                                ],
                            }
                            for name in ("spot", "own")
                        ],
                    }
                ]
            },
            "4",
            "",
        ),
        ("cluster-queue", {"resourceGroups": []}, None, ""),
    ],
)
def test_the_quota_of_gpus_is_read_from_the_objects_of_each_project(
    kind: QuotaKind, spec: dict[str, Any], gpus: str | None, parent: str
) -> None:
    meta = {"name": "q", "namespace": "lab", "uid": "u", "resourceVersion": "1"}
    found = gpu_quota(kind, item_of(msgspec.json.encode({"metadata": meta, "spec": spec})))
    if gpus is None:
        assert found is None
    else:
        assert found == QuotaSpan(kind, "q", 0, None, int(Decimal(gpus) * FULL_SHARE), parent)
