"""A pod's life as stages tell it, without server or fleet: from an input file to what its status becomes."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.client.kubelet.pod_facts import PodFacts
from shoal.client.kubelet.pod_run import ContainerRun, PodRun, new_run
from shoal.client.kubelet.pod_status import status_of
from shoal.devices.pod_refusal import Refused
from shoal.embedded.gpus.node_software import NodeSoftware
from shoal.embedded.kubelets import pod_actions
from shoal.embedded.kubelets.gpu_components.component_pod import ComponentPod, component_pod
from shoal.embedded.kubelets.pod_actions import PodSituation
from shoal.embedded.kubelets.stage_files import read_stages
from shoal.embedded.kubelets.timetable import Timetable
from shoal.embedded.machines.gpu_software import Layer

Obj = dict[str, Any]
START_S = 1_767_225_600.0
_SCHEDULED = {"type": "PodScheduled", "status": "True"}


class Explanation(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """The input: a pod, what its node is like, and how long to look."""

    pod: Obj
    until_s: float
    delete_at_s: float | None = None
    refuses: tuple[str, str] | None = None
    """Reason and message with which the node refuses it."""
    error: str = ""
    """What its program meets when it starts."""
    pace: float = 1.0
    layers: dict[float, list[Layer]] | None = None
    """The layers of GPU software on the node from each time on, where component pods add them."""
    component_faults: dict[str, str] = {}


class _Node:
    def __init__(self, story: Explanation) -> None:
        self.story = story
        self.said: list[str] = []

    def admit(self, run: PodRun, facts: PodFacts) -> Refused | None:
        return Refused(*self.story.refuses) if self.story.refuses else None

    def address(self, run: PodRun, facts: PodFacts) -> str:
        return "198.18.64.1"

    def started(self, run: PodRun, one: ContainerRun, facts: PodFacts) -> str | None:
        one.pace = self.story.pace
        return self.story.error or None

    def stopped(self, run: PodRun, one: ContainerRun) -> None: ...

    def over(self, run: PodRun) -> None: ...

    def record_event(self, run: PodRun, reason: str, message: str, type_: str, container: str = "") -> None:
        self.said.append(f"{type_} {reason}: {message}")


def told(story: Explanation) -> tuple[list[Obj], set[str]]:
    """What the status is after each moment in which something happens, and the names of the stages that were played."""
    facts = msgspec.convert({"status": {"conditions": [_SCHEDULED]}, **story.pod}, PodFacts)
    run, node = new_run(facts, START_S), _Node(story)
    run.grace_s = float(facts.spec.termination_grace_period_seconds)
    timetable = Timetable(read_stages(), 2.0, 1)
    moments: list[Obj] = []
    played: set[str] = set()
    delete_at_s, reached_s = story.delete_at_s, 0.0
    while len(moments) < 100:
        due = timetable.first(run, facts, _component(story, facts, reached_s))
        next_s = min((at_s for at_s in story.layers or () if at_s > reached_s), default=float("inf"))
        if next_s <= story.until_s and (due is None or due.at_s - START_S > next_s):
            reached_s = next_s
            continue
        at_s = due.at_s - START_S if due is not None else float("inf")
        if delete_at_s is not None and delete_at_s < at_s:
            pod_actions.stop(PodSituation(run, facts, node, START_S + delete_at_s), run.grace_s)
            at_s, delete_at_s = delete_at_s, None
        elif due is None or at_s > story.until_s:
            return moments, played
        else:
            at_s = max(at_s, reached_s)
            played.add(due.stage.name)
            pod_actions.play(PodSituation(run, facts, node, START_S + at_s), due)
        if moments and moments[-1]["at"] == at_s:
            node.said = moments.pop()["events"] + node.said
        moments.append({"at": at_s, **_shown(status_of(run, facts, "198.18.0.1", START_S + at_s)), "events": node.said})
        node.said = []
    raise AssertionError("the story does not end")


def _component(story: Explanation, facts: PodFacts, reached_s: float) -> ComponentPod | None:
    if story.layers is None:
        return None
    layers = max((at_s, layers) for at_s, layers in story.layers.items() if at_s <= reached_s)[1]
    return component_pod(facts, NodeSoftware(frozenset(layers)), story.component_faults)


def _shown(status: Obj) -> Obj:
    """A status on a few lines."""
    shown: Obj = {key: status[key] for key in ("phase", "reason", "message") if key in status}
    shown["conditions"] = {
        one["type"]: " ".join(filter(None, (one["status"], one.get("reason")))) for one in status.get("conditions", ())
    }
    shown["containers"] = {one["name"]: _container(one) for one in status.get("containerStatuses", ())}
    inits = {one["name"]: _container(one) for one in status.get("initContainerStatuses", ())}
    return shown | ({"initContainers": inits} if inits else {})


def _container(one: Obj) -> Obj:
    said: Obj = {"ready": one["ready"], "started": one["started"], "restarts": one["restartCount"]}
    for name in ("state", "lastState"):
        for kind, words in one[name].items():
            said[name] = {kind: {key: value for key, value in words.items() if key != "containerID"}}
    return said
