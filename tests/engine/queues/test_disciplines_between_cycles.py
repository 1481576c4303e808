"""What happens between two cycles of KAI's or Volcano's discipline is taken into account, although neither reads the
facts anew while it takes them for unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from msgspec import structs

from build.fair_share import FairWorld, promised, stopped
from build.fair_share import queue as kai_queue
from build.volcano_worlds import World, plugin
from build.volcano_worlds import queue as volcano_queue
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.cycle_state import Step
from shoal.engine.events import PodBound, PodStays
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Plan
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.profile import NO_PREFERENCES

NOW_S = 10_000.0
_BASIC = plugin("priority"), plugin("gang"), plugin("conformance"), plugin("nodeorder")


def planned(cluster: Cluster, steps: tuple[Step, ...], most: int | None = None, now_s: float = NOW_S) -> Plan:
    """One cycle, of which no binding is confirmed."""
    return cycle(cluster, Placement(cluster, NO_PREFERENCES), now_s=now_s, seed=0, steps=steps, most=most)


def reported(
    intake: Intake,
    key: str,
    changed: Callable[[PodIdentity], PodIdentity] = lambda who: who,
    *,
    terminating: bool = False,
) -> None:
    """The API server reports a pod where it is."""
    pod = intake.cluster.pods[key]
    node = intake.cluster.names[pod.row]
    intake.apply(PodBound(key, pod.ask, node, pod.grant, pod.priority, who=changed(pod.who), terminating=terminating))


def yields(who: PodIdentity) -> PodIdentity:
    return structs.replace(who, is_preemptible=True)


def stays_put(who: PodIdentity) -> PodIdentity:
    return structs.replace(who, is_preemptible=False)


# -- after a cycle that found nothing to do ----------------------------------------------------------------------------


def test_kai_promises_the_room_of_a_pod_that_terminates_since_and_takes_it_back_when_the_pod_stays() -> None:
    world = FairWorld([1], kai_queue("q", quota=None)).job("old", "q", on=["n0"]).job("new", "q")
    assert not [promised(world.run()) for _ in range(2)][-1]
    reported(world.intake, "old-0", terminating=True)
    assert promised(world.run()) == ["new-0"]
    world.intake.apply(PodStays("old-0"))
    assert not promised(world.run())


def test_kai_preempts_a_pod_that_may_be_preempted_since() -> None:
    world = FairWorld([1], kai_queue("q", quota=None)).job("old", "q", on=["n0"]).job("new", "q", priority=60)
    reported(world.intake, "old-0", stays_put)
    assert not [stopped(world.run()) for _ in range(2)][-1]
    reported(world.intake, "old-0", yields)
    assert stopped(world.run()) == ["old-0"]


def test_volcano_preempts_a_pod_that_may_be_preempted_since() -> None:
    world = World([volcano_queue("q")], {"n1": {"cpu": 1}}, (_BASIC,))
    world.job("old", "q", "n1:1", minimum=0, is_preemptible=False).job("new", "q", ":1", priority=9)
    assert not [world.run("allocate", "preempt").evicted for _ in range(2)][-1]
    reported(world.intake, "old-0", yields)
    assert world.run("allocate", "preempt").evicted == {"old-0"}


def test_kai_moves_a_pod_once_its_binding_is_confirmed() -> None:
    world = FairWorld([2, 2], kai_queue("q", quota=None)).job("fixed", "q", on=["n0"], priority=100)
    world.job("leaves", "q", on=["n0"]).job("moves", "q")
    discipline = world.discipline
    planned(world.cluster, discipline.steps())
    world.gone("leaves-0").job("large", "q", 2)
    assert not [planned(world.cluster, discipline.steps()).moved for _ in range(2)][-1]
    reported(world.intake, "moves-0")
    assert [move.pod for move in planned(world.cluster, discipline.steps()).moved] == ["moves-0"]


# -- between cycles that their limit has cut ---------------------------------------------------------------------------


def test_volcano_looks_at_the_pods_that_cut_cycles_have_placed_once_they_are_over() -> None:
    world = World([volcano_queue("q")], {"n1": {"cpu": 2}}, (_BASIC,))
    world.job("first", "q", "n1:1", minimum=0).job("second", "q", ":1", minimum=0)
    world.job("large", "q", ":2", priority=9)
    world.run()
    discipline = world.discipline
    assert discipline is not None
    discipline.configure(structs.replace(discipline.configuration, actions=("allocate", "preempt")))
    plans = [planned(world.cluster, discipline.steps(), most=1) for _ in range(3)]
    assert [place.pod for plan in plans for place in plan.placed] == ["second-0"]
    assert stopped(plans[-1]) == ["first-0", "second-0"]


def test_promises_that_reclaim_only_makes_again_do_not_cut_cycles_for_ever() -> None:
    world = FairWorld([1], kai_queue("a"), kai_queue("b", quota=1)).job("old", "a", on=["n0"]).job("new", "b")
    world.discipline.actions = "reclaim", "allocate"
    plans = [planned(world.cluster, world.discipline.steps(), most=1) for _ in range(2)]
    assert [promised(plan) for plan in plans] == [["new-0"], ["new-0"]]
    assert not plans[-1].is_cut


def test_volcano_goes_on_in_the_time_window_of_now() -> None:
    zone = {"volcano.sh/revocable-zone": "z"}
    tdm = plugin("tdm", arguments={"tdm.revocable-zone.z": "0:00-0:01"})
    world = World([volcano_queue("q")], {"n1": {"cpu": 4}}, ((*_BASIC, tdm),), labels={"n1": zone})
    for name in "ab":
        world.job(name, "q", ":1")
    world.run()
    discipline = world.discipline
    assert discipline is not None
    discipline.configure(structs.replace(discipline.configuration, actions=("allocate",)))
    plans = [planned(world.cluster, discipline.steps(), 1, now_s) for now_s in (59.0, 60.0)]
    assert [len(plan.placed) for plan in plans] == [1, 0]


# -- promises ----------------------------------------------------------------------------------------------------------


def test_volcano_ends_its_cycle_when_a_job_that_runs_loses_a_promise() -> None:
    world = World([volcano_queue("q")], {"n1": {"cpu": 1}, "n2": {"cpu": 1}}, (_BASIC,))
    world.job("runs", "q", "n1:1", ":1", minimum=1).job("leaves", "q", "n2:1", priority=9)
    reported(world.intake, "leaves-0", terminating=True)
    assert world.run("allocate").promised == {"runs-1"}
    world.intake.apply(PodStays("leaves-0"))
    assert not world.run("allocate").promised


# -- weights -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("nodeorder", {"leastrequested.weight": 10**7}),
        ("nodeorder", {"podaffinity.weight": -(10**12)}),
        ("binpack", {"binpack.weight": 10**12}),
        ("binpack", {"binpack.cpu": 1e300, "binpack.weight": float("inf")}),
        ("binpack", {"binpack.cpu": "nan"}),
        ("resource-strategy-fit", {"resourceStrategyFitWeight": 10**400}),
        ("resource-strategy-fit", {"resources": {"cpu": {"type": "MostAllocated", "weight": 1e30}}}),
    ],
    ids=["leastrequested", "podaffinity", "binpack", "infinite", "no number", "huge", "of a resource"],
)
def test_weights_of_any_size_leave_no_pod_waiting(name: str, arguments: dict[str, object]) -> None:
    others = [each for each in _BASIC if each.name != name]
    nodes: dict[str, Mapping[str, float]] = {f"n{at}": {"cpu": 4} for at in range(3)}
    world = World([volcano_queue("q")], nodes, ((*others, plugin(name, arguments=arguments)),))
    for at in range(6):
        world.job(f"j{at}", "q", ":1", ":1", minimum=2)
    assert len(world.run("allocate").bound) == 12


def test_weights_that_are_too_large_keep_their_ratio() -> None:
    binpack = plugin("binpack", arguments={"binpack.weight": 1, "binpack.cpu": 10**12, "binpack.memory": 10**11})
    world = World([volcano_queue("q")], {"n1": {"cpu": 8}, "n2": {"cpu": 4}}, ((*_BASIC[:3], binpack),))
    assert world.job("j", "q", ":1").run("allocate").places == {"j-0": "n2"}
