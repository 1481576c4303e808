"""What holds for all tests of one process: their order, and how rarely its memory is searched for garbage.

Tests that wait for processes of their own are begun first, by two workers that share few of those processes: while they
wait the others compute; at the end they would wait alone.

A worker holds some ten thousand collected tests and the modules under them, none of which is ever garbage, and small
clusters come and go by the thousand. A collector at its usual pace took a third of the time of such tests. Rejected:
none at all, since the cycles of a cluster that ended hold tens of megabytes.
"""

from __future__ import annotations

import gc
import os
import shutil

import pytest
from hypothesis import HealthCheck, settings

# An example may take its time on a machine with much else to do, and usual runs try the same ones each time.
settings.register_profile(
    "shoal",
    deadline=None,
    derandomize="SHOAL_DEEP" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("shoal")

_CREATED_BETWEEN = 50_000
_WAITING = frozenset({"e2e", "contracts"})


def pytest_configure() -> None:
    gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    living: list[pytest.Item] = []
    waiting: list[pytest.Item] = []
    rest: list[pytest.Item] = []
    for item in items:
        folders = item.path.parts
        (living if "living" in folders else waiting if _WAITING.intersection(folders) else rest).append(item)
    # Each worker begins with an equal part of the list, in its order.
    part = len(items) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    beside = rest[: max(0, part - len(living))]
    items[:] = [*living, *beside, *waiting, *rest[len(beside) :]]


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("e2e") is not None and "SHOAL_E2E" not in os.environ:
        pytest.skip("runs in `make e2e`")
    for program in (name for mark in item.iter_markers("external") for name in mark.args):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}, which is not installed")


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(_CREATED_BETWEEN, 20, 20)
    gc.enable()
