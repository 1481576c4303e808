"""Work that moves for a waiting job of Volcano's queues: only where all of it then has a place, and never for a job
that its queue holds back."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from build.volcano_worlds import PLUGINS, Outcome, World, plugin, queue
from shoal.engine.plan import Move
from shoal.engine.queues.disciplines.volcano.configuration import PluginOption

MOVES = (*(plugin(name) for name in PLUGINS), plugin("rescheduling"))
STAYS = tuple(plugin(name) for name in PLUGINS)
SCATTERED: Mapping[str, Mapping[str, float]] = {"n1": {"cpu": 4}, "n2": {"cpu": 4}}


def scattered(plugins: tuple[PluginOption, ...] = MOVES, *, capability: int = 100) -> World:
    """Two nodes, each with two free cores."""
    made = World([queue("q", capability={"cpu": capability})], dict(SCATTERED), (plugins,))
    return made.job("a", "q", "n1:2").job("b", "q", "n2:2")


def moves(found: Outcome) -> list[Move]:
    return [each for each in found.plan.intentions if isinstance(each, Move)]


def test_a_running_pod_moves_so_that_a_large_one_fits() -> None:
    found = scattered().job("large", "q", ":4").run("allocate", "backfill")
    (move,) = moves(found)
    assert {move.source, move.target} == {"n1", "n2"}
    assert found.promised == {"large-0"}
    assert found.evicted == set()


def test_a_gang_gets_all_its_places_or_nothing_moves() -> None:
    found = scattered().job("gang", "q", ":4", ":4", minimum=2).run("allocate")
    assert (moves(found), found.promised) == ([], set())


def test_without_the_plugin_nothing_moves() -> None:
    assert moves(scattered(STAYS).job("large", "q", ":4").run("allocate")) == []


def test_nothing_moves_for_a_job_beyond_the_capability_of_its_queue() -> None:
    found = scattered(capability=7).job("large", "q", ":4").run("allocate")
    assert moves(found) == []
    assert len(moves(scattered(capability=8).job("large", "q", ":4").run("allocate"))) == 1


def test_two_jobs_do_not_share_what_is_left_of_a_quota() -> None:
    nodes: dict[str, Mapping[str, float]] = {f"n{number}": {"cpu": 4} for number in range(4)}
    made = World([queue("q", capability={"cpu": 12})], nodes, (MOVES,))
    for number in range(4):
        made.job(f"r{number}", "q", f"n{number}:2")
    found = made.job("one", "q", ":4").job("two", "q", ":4").run("allocate")
    assert found.promised == {"one-0"}


def test_nothing_moves_for_a_job_that_was_not_admitted() -> None:
    made = World([queue("q", capability={"cpu": 6})], dict(SCATTERED), (MOVES,))
    made.job("a", "q", "n1:2").job("b", "q", "n2:2")
    made.job("large", "q", ":4", min_resources={"cpu": 4}, is_enqueued=False)
    assert moves(made.run("enqueue", "allocate")) == []


@pytest.mark.parametrize(("namespace", "count"), [("kube-system", 0), ("ns", 1)])
def test_pods_of_the_system_do_not_move_while_conformance_is_on(namespace: str, count: int) -> None:
    made = World([queue("q")], dict(SCATTERED), (MOVES,))
    for name, place in (("a", "n1:2"), ("b", "n2:2")):
        made.job(name, "q", place, namespace=namespace)
    assert len(moves(made.job("large", "q", ":4").run("allocate"))) == count


def test_pods_that_may_not_be_evicted_do_not_move() -> None:
    made = World([queue("q")], dict(SCATTERED), (MOVES,))
    made.job("a", "q", "n1:2", is_preemptible=False).job("b", "q", "n2:2", is_preemptible=False)
    assert moves(made.job("large", "q", ":4").run("allocate")) == []


def test_a_session_that_moved_something_is_followed_by_another() -> None:
    made = scattered().job("large", "q", ":4")
    made.run("allocate")
    assert made.discipline is not None
    assert not made.discipline.is_idle
