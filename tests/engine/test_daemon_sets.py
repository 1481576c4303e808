"""Room is set aside for DaemonSets' pods that are not there yet, exactly where one will come."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from build.nodes import node
from build.pods import ask, named, term
from build.scenario import Scenario

AGENT = ask().cpu(1).memory_gib(1)


def test_every_node_owes_room_before_the_pod_is_there() -> None:
    world = Scenario(node("n").cpu(4), node("m").cpu(2)).daemon_set("agent", AGENT)
    assert (world.free("n"), world.free("m")) == (3000, 1000)
    assert world.free("n", "pods") == 109
    assert world.fitting(ask().cpu(2)) == {"n"}


def test_a_node_that_comes_later_owes_too() -> None:
    world = Scenario().daemon_set("agent", AGENT).see(node("n").cpu(4))
    assert world.free("n") == 3000


def test_the_debt_is_settled_when_the_pod_arrives_and_owed_again_when_it_goes() -> None:
    world = Scenario(node("n").cpu(4)).daemon_set("agent", AGENT)
    world.bind("agent-x", AGENT, "n", daemon_set="agent")
    assert world.free("n") == 3000
    world.go("agent-x")
    assert world.free("n") == 3000
    world.bind("agent-y", AGENT, "n", daemon_set="agent").bind("agent-z", AGENT, "n", daemon_set="agent")
    assert world.free("n") == 2000
    world.go("agent-y")
    assert world.free("n") == 3000


def test_a_pod_that_was_there_before_its_daemon_set_is_seen_settles_the_debt() -> None:
    world = Scenario(node("n").cpu(4)).bind("agent-x", AGENT, "n", daemon_set="agent").daemon_set("agent", AGENT)
    assert world.free("n") == 3000


def test_a_pod_seen_before_its_node_settles_the_debt() -> None:
    world = Scenario().daemon_set("agent", AGENT).bind("agent-x", AGENT, "n", daemon_set="agent").see(node("n").cpu(4))
    assert world.free("n") == 3000


def test_only_nodes_that_the_daemon_set_selects_owe() -> None:
    world = Scenario(node("gpu").cpu(4).label("gpu", "yes"), node("cpu").cpu(4))
    world.daemon_set("exporter", AGENT.select("gpu", "In", "yes"))
    assert (world.free("gpu"), world.free("cpu")) == (3000, 4000)


def test_a_node_that_changes_its_labels_changes_what_it_owes() -> None:
    world = Scenario(node("n").cpu(4)).daemon_set("exporter", AGENT.select("gpu", "Exists"))
    assert world.free("n") == 4000
    world.see(node("n").cpu(4).label("gpu", "yes"))
    assert world.free("n") == 3000
    world.see(node("n").cpu(4))
    assert world.free("n") == 4000


def test_a_tainted_node_owes_only_to_those_who_tolerate_it() -> None:
    world = Scenario(node("n").cpu(4).taint("gpu"))
    world.daemon_set("shy", AGENT).daemon_set("bold", AGENT.tolerate("gpu"))
    assert world.free("n") == 3000


def test_what_a_daemon_set_asks_of_devices_is_not_set_aside() -> None:
    world = Scenario(node("n").cpu(4).gpus(2)).daemon_set("agent", AGENT.gpus(1))
    assert world.free("n") == 3000
    assert world.pieces("n") == [1000, 1000]


def test_cordoned_and_ailing_nodes_owe_to_those_who_tolerate_that() -> None:
    world = Scenario(
        node("cordoned").cpu(4).cordoned(),
        node("ailing").cpu(4).taint("node.kubernetes.io/not-ready", "NoExecute"),
    )
    world.daemon_set(
        "agent", AGENT.tolerate("node.kubernetes.io/unschedulable").tolerate("node.kubernetes.io/not-ready")
    )
    assert (world.free("cordoned"), world.free("ailing")) == (3000, 3000)


def test_a_deleted_daemon_set_is_owed_nothing() -> None:
    world = Scenario(node("n").cpu(4)).daemon_set("agent", AGENT).drop_daemon_set("agent").drop_daemon_set("agent")
    assert world.free("n") == 4000
    world.bind("late", AGENT, "n", daemon_set="agent").go("late")
    assert world.free("n") == 4000


def test_a_daemon_set_that_grows_is_owed_the_new_amount() -> None:
    world = Scenario(node("n").cpu(4)).daemon_set("agent", AGENT).daemon_set("agent", AGENT.cpu(2))
    assert world.free("n") == 2000
    world.daemon_set("agent", AGENT.cpu(2))
    assert world.free("n") == 2000


def test_a_node_that_leaves_takes_its_debt_with_it() -> None:
    world = Scenario(node("n").cpu(4)).daemon_set("agent", AGENT).lose("n").see(node("other").cpu(4))
    assert world.free("other") == 3000
    world.drop_daemon_set("agent")
    assert world.free("other") == 4000


def test_a_daemon_pod_that_moves_leaves_a_debt_behind_and_settles_the_new_one() -> None:
    world = Scenario(node("n").cpu(4), node("m").cpu(4)).daemon_set("agent", AGENT)
    world.bind("agent-x", AGENT, "n", daemon_set="agent").bind("agent-x", AGENT, "m", daemon_set="agent")
    assert (world.free("n"), world.free("m")) == (3000, 3000)
    assert world.placed() == {"agent-x": "m"}


def test_debts_survive_a_widening_of_the_record() -> None:
    world = Scenario(node("n").cpu(4)).daemon_set("agent", AGENT)
    world.see(*(node(f"m{index}").resource(f"example.com/r{index}", 1) for index in range(12)))
    world.drop_daemon_set("agent")
    assert world.free("n") == 4000


class TestTheDaemonSetsOwnPod:
    """The room set aside is for this very pod: nothing else takes it, and it is not withheld from the pod itself."""

    FULL = node("n").cpu(1)
    OWN = AGENT.either(term(names=named("In", "n")))

    def test_it_takes_the_room_set_aside_for_it_on_a_full_node(self) -> None:
        world = Scenario(self.FULL).daemon_set("agent", AGENT).arrive("other", AGENT)
        assert world.round().placed == []
        world.arrive("agent-x", self.OWN, priority=1, daemon_set="agent").round()
        assert world.placed() == {"agent-x": "n"}

    def test_nobody_ahead_in_the_line_takes_it(self) -> None:
        world = Scenario(self.FULL).daemon_set("agent", AGENT)
        world.arrive("other", AGENT).arrive("agent-x", self.OWN, daemon_set="agent").round()
        assert world.placed() == {"agent-x": "n"}

    def test_once_it_runs_nothing_is_owed_and_once_it_is_gone_the_room_is_again(self) -> None:
        world = Scenario(node("n").cpu(4)).daemon_set("agent", AGENT).arrive("agent-x", self.OWN, daemon_set="agent")
        plan = world.round()
        assert world.free("n") == 3000
        world.bind("agent-x", self.OWN, plan.placed[0].node, daemon_set="agent")
        assert world.free("n") == 3000
        world.go("agent-x")
        assert world.free("n") == 3000

    def test_a_waiting_one_that_goes_leaves_the_room_set_aside(self) -> None:
        world = Scenario(node("n").cpu(4)).daemon_set("agent", AGENT).arrive("agent-x", self.OWN, daemon_set="agent")
        world.go("agent-x")
        assert world.free("n") == 3000

    def test_room_on_other_nodes_stays_set_aside_while_it_waits(self) -> None:
        world = Scenario(node("n").cpu(4), node("m").cpu(4)).daemon_set("agent", AGENT)
        world.arrive("agent-x", self.OWN, daemon_set="agent")
        assert world.free("m") == 3000
        world.round()
        assert (world.free("n"), world.free("m")) == (3000, 3000)

    def test_it_gets_its_room_whatever_the_order_of_the_news(self) -> None:
        news: list[Callable[[Scenario], Scenario]] = [
            lambda w: w.see(self.FULL),
            lambda w: w.daemon_set("agent", AGENT),
            lambda w: w.arrive("agent-x", self.OWN, daemon_set="agent"),
        ]
        for order in itertools.permutations(news):
            world = Scenario()
            for happening in order:
                happening(world)
            assert [place.pod for place in world.round().placed] == ["agent-x"]
            assert world.free("n") == 0

    def test_it_gets_its_room_when_the_node_comes_back(self) -> None:
        world = Scenario(self.FULL).daemon_set("agent", AGENT).arrive("agent-x", self.OWN, daemon_set="agent")
        world.lose("n").see(self.FULL)
        assert [place.pod for place in world.round().placed] == ["agent-x"]

    def test_a_rejected_one_is_tried_again_with_its_room(self) -> None:
        world = Scenario(self.FULL).daemon_set("agent", AGENT).arrive("agent-x", self.OWN, daemon_set="agent")
        world.round()
        world.reject("agent-x")
        assert [place.pod for place in world.round().placed] == ["agent-x"]

    def test_a_rejected_one_is_still_tried_first(self) -> None:
        world = Scenario(self.FULL).daemon_set("agent", AGENT)
        world.arrive("other", AGENT).arrive("agent-x", self.OWN, daemon_set="agent").round()
        world.reject("agent-x").round()
        assert world.placed() == {"agent-x": "n"}
