"""What a pod says of its own end: whether it may be made to yield, and how much of its work that would cost."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.nodes import node
from build.yielding import Yielding, gpus
from shoal.api.pod import Pod
from shoal.api.wire import dec_hook
from shoal.engine.from_api import Rank, who_of_pod
from shoal.engine.plan import Evict
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.preemption.policy import Order, VictimPolicy
from shoal.units.errors import UserError

PLAIN = Rank(0, preempts=True)


def who(labels: dict[str, str] | None = None, **annotations: str) -> PodIdentity:
    said = {f"shoal.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    meta: Any = {"name": "a", "namespace": "default", "annotations": said, "labels": labels or {}}
    obj = {"metadata": meta, "spec": {"containers": []}, "status": {"startTime": "2026-01-01T00:00:00Z"}}
    return who_of_pod(msgspec.convert(obj, Pod, dec_hook=dec_hook), PLAIN)


@pytest.mark.parametrize(
    ("text", "seconds"), [("10m", 600.0), ("1h30m", 5400.0), ("90s", 90.0), ("0.5h", 1800.0), ("1d", 86400.0)]
)
def test_spans_are_written_as_people_write_them(text: str, seconds: float) -> None:
    assert who(checkpoint_every=text).saves_every_s == seconds


@pytest.mark.parametrize("text", ["", "10", "m", "often", "0s", "-5m", "10m ", "5 m", "1e3s"])
def test_what_is_no_span_is_refused_where_it_stands(text: str) -> None:
    with pytest.raises(UserError, match=r"is not a time span; write e\.g\. 10m or 1h30m") as told:
        who(checkpoint_every=text)
    assert told.value.where.path == "metadata.annotations[shoal.dev/checkpoint-every]"


def test_only_a_pod_that_says_so_never_yields() -> None:
    assert who().is_preemptible
    assert who(preemptible="true").is_preemptible
    assert not who(preemptible="false").is_preemptible


def test_two_projects_words_may_agree_but_not_contradict_each_other() -> None:
    assert not who({"volcano.sh/preemptable": "false"}, preemptible="false").is_preemptible
    with pytest.raises(UserError, match=r"shoal\.dev/preemptible and volcano\.sh/preemptable contradict each other"):
        who({"volcano.sh/preemptable": "true"}, preemptible="false")


def test_a_word_that_is_neither_true_nor_false_is_refused() -> None:
    with pytest.raises(UserError, match="expected true or false"):
        who(preemptible="never")


def test_what_is_lost_is_counted_from_the_last_save() -> None:
    assert PodIdentity(since_s=100).lost_s(1000) == 900
    assert PodIdentity(since_s=100, saved_s=400).lost_s(1000) == 600
    assert PodIdentity(since_s=100, saves_every_s=250).lost_s(1000) == 150
    assert PodIdentity(since_s=100, saved_s=950, saves_every_s=250).lost_s(1000) == 50


times = st.floats(0, 1e6)


@given(since=times, saved=st.none() | times, every=st.floats(0, 1e4), now=times)
def test_nobody_loses_more_than_it_ran_or_less_than_nothing(
    since: float, saved: float | None, every: float, now: float
) -> None:
    lost = PodIdentity(since_s=since, saved_s=saved, saves_every_s=every).lost_s(now)
    assert 0 <= lost <= max(now - since, 0)
    if every:
        assert lost <= every


@pytest.mark.parametrize("order", [Order.LOWEST_PRIORITY, Order.LEAST_LOST_WORK])
def test_of_equals_the_one_that_saved_last_yields(order: Order) -> None:
    world = Yielding(*(node(name).gpus(1) for name in ("n1", "n2", "n3")), policy=VictimPolicy(order))
    world.runs("new", "n1", gpus(1), since_s=700)
    world.runs("saved", "n2", gpus(1), since_s=100, saved_s=900)
    world.runs("old", "n3", gpus(1), since_s=50)
    world.waits("urgent", gpus(1), priority=5)
    assert [each.pod for each in world.round().intentions if isinstance(each, Evict)] == ["saved"]
