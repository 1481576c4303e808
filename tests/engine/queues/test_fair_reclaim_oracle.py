"""The end test of reclaim against its definition, written a second time with fractions and sets of names."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareSettings
from shoal.engine.queues.disciplines.kai.fair_queues import FairQueue, QueueTree
from shoal.engine.queues.disciplines.kai.reclaim_rules import is_fair

PARENTS = {"x": "", "y": "", "x1": "x", "x2": "x", "y1": "y", "y2": "y"}
LEAVES = ["x1", "x2", "y1", "y2"]
AMOUNTS = st.tuples(*[st.integers(0, 6)] * 3)
BOUNDS = st.tuples(*[st.none() | st.integers(0, 6)] * 3)


@given(
    quotas=st.lists(BOUNDS, min_size=6, max_size=6),
    held=st.lists(AMOUNTS, min_size=4, max_size=4),
    shares=st.lists(AMOUNTS, min_size=6, max_size=6),
    step=AMOUNTS,
    taken=st.lists(st.tuples(st.sampled_from(LEAVES[1:]), AMOUNTS), max_size=3),
    multiplier=st.sampled_from([0.5, 1.0, 1.5]),
)
@settings(max_examples=examples(150), deadline=None)
def test_the_outcome_is_fair_as_defined(
    quotas: list[Any],
    held: list[tuple[int, ...]],
    shares: list[tuple[int, ...]],
    step: tuple[int, ...],
    taken: list[tuple[str, tuple[int, ...]]],
    multiplier: float,
) -> None:
    tree = QueueTree([FairQueue(name, PARENTS[name], quota=quota) for name, quota in zip(PARENTS, quotas, strict=True)])
    allocated = dict.fromkeys(PARENTS, (0, 0, 0))
    for leaf, amounts in zip(LEAVES, held, strict=True):
        for name in (leaf, PARENTS[leaf]):
            allocated[name] = tuple(map(sum, zip(allocated[name], amounts, strict=True)))  # type: ignore[assignment]
    fair = dict(zip(PARENTS, shares, strict=True))
    quota_of = dict(zip(PARENTS, quotas, strict=True))
    for name, node in tree.nodes.items():
        node.allocated, node.fair_share = list(allocated[name]), list(fair[name])
        node.allocatable = [
            None if quota is None else max(quota, share)
            for quota, share in zip(quota_of[name], fair[name], strict=True)
        ]
    cycle: Any = SimpleNamespace(settings=FairshareSettings(reclaim_multiplier=multiplier), tree=tree)
    job: Any = SimpleNamespace(leaf=tree.nodes["x1"], is_preemptible=True)
    steps: list[Any] = [
        (SimpleNamespace(job=SimpleNamespace(leaf=tree.nodes[leaf])), amounts) for leaf, amounts in taken
    ]
    assert is_fair(cycle, job, step, steps) is _is_fair(allocated, fair, quota_of, step, taken, multiplier)


def _is_fair(
    allocated: dict[str, Any],
    fair: dict[str, Any],
    quota: dict[str, Any],
    step: tuple[int, ...],
    taken: list[tuple[str, tuple[int, ...]]],
    multiplier: float,
) -> bool:
    gone = {name: [0, 0, 0] for name in PARENTS}
    for leaf, amounts in taken:
        ours, theirs = ("x1", leaf) if leaf == "x2" else ("x", "y")
        left = [allocated[theirs][at] - gone[theirs][at] for at in range(3)]
        is_above = any(
            quota[theirs][at] is not None and left[at] > max(quota[theirs][at], fair[theirs][at]) for at in range(3)
        )
        is_within = all(quota[ours][at] is None or allocated[ours][at] + step[at] <= quota[ours][at] for at in range(3))
        is_beyond = any(quota[theirs][at] is not None and left[at] > quota[theirs][at] for at in range(3))
        if not (is_above or (is_within and is_beyond)):
            return False
        for name in (leaf, PARENTS[leaf]):
            gone[name] = [gone[name][at] + amounts[at] for at in range(3)]
    touched = {name for leaf, _ in taken for name in (leaf, PARENTS[leaf])}
    for at in range(3):
        if not step[at] and not any(amounts[at] for _, amounts in taken):
            continue
        for ours, sibling in (("x1", "x2"), ("x", "y")):
            after = allocated[ours][at] + step[at] - gone[ours][at]
            if sibling not in touched or not fair[sibling][at] or after <= fair[ours][at]:
                continue
            saturation = Fraction(allocated[sibling][at] - gone[sibling][at], fair[sibling][at])
            if not fair[ours][at] or Fraction(after, fair[ours][at]) * Fraction(max(1.0, multiplier)) >= saturation:
                return False
    return True
