"""The engine's facts again, in dictionaries and loops: what a fleet holds after some events, and what fits where.

The oracle of the properties. It is fed the same events and the engine's placements, recomputes every amount from
scratch whenever it is asked, and shares with the engine only the values themselves and the one-node rules of `api`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shoal.api.taints import UNSCHEDULABLE, Toleration, untolerated
from shoal.engine.asks import Ask, HostPort
from shoal.engine.device_demand import Demand, DeviceGrant, GpuShare, WholeGpus
from shoal.engine.events import (
    DaemonSetGone,
    DaemonSetSeen,
    Event,
    NodeFacts,
    NodeGone,
    NodeSeen,
    PodArrived,
    PodBound,
    PodGone,
    PodRejected,
)
from shoal.engine.plan import Place

FULL = 1000
MODEL_LABEL = "nvidia.com/gpu.product"

Parts = dict[int, int]


@dataclass
class Held:
    node: str
    ask: Ask
    parts: Parts
    """Device -> thousandths taken."""
    bound: bool
    daemon_set: str = ""
    turn: int = -1
    priority: int = 0
    guessed: bool = False
    """Nobody said which devices it holds."""


@dataclass
class PlainFleet:
    nodes: dict[str, NodeFacts] = field(default_factory=dict)
    pods: dict[str, Held] = field(default_factory=dict)
    waiting: dict[str, tuple[Ask, int, int]] = field(default_factory=dict)
    strays: dict[str, PodBound] = field(default_factory=dict)
    daemon_sets: dict[str, Ask] = field(default_factory=dict)
    turns: int = 0

    # -- events --------------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        match event:
            case NodeSeen(node):
                before = self.nodes.get(node.name)
                self.nodes[node.name] = node
                changed = before is not None and (before.gpus, before.layout) != (node.gpus, node.layout)
                self._guess_again(node.name, changed)
                for key, stray in list(self.strays.items()):
                    if stray.node == node.name:
                        del self.strays[key]
                        self._bind(stray)
            case NodeGone(name):
                self.nodes.pop(name, None)
                for key in [key for key, pod in self.pods.items() if pod.node == name]:
                    self._leave(key, self.pods[key])
            case PodArrived(key, ask, priority):
                self._arrive(key, ask, priority)
            case PodGone(key):
                self.waiting.pop(key, None)
                gone = self.pods.pop(key, None)
                self.strays.pop(key, None)
                if gone is not None:
                    self._guess_again(gone.node)
            case PodRejected(key):
                held = self.pods.get(key)
                if held is not None and not held.bound:
                    del self.pods[key]
                    self.waiting[key] = (held.ask, held.priority, held.turn)
                    self._guess_again(held.node)
            case PodBound():
                self._bind(event)
            case DaemonSetSeen(name, ask):
                self.daemon_sets[name] = ask
            case DaemonSetGone(name):
                self.daemon_sets.pop(name, None)

    def _leave(self, key: str, held: Held) -> None:
        """The node went: a bound pod is there again when the node is, one that was only planned waits."""
        del self.pods[key]
        if not held.bound:
            self.waiting[key] = (held.ask, held.priority, held.turn)
            return
        known = held.parts and not held.guessed
        grant = DeviceGrant(tuple((device, 0, amount) for device, amount in held.parts.items())) if known else None
        self.strays[key] = PodBound(key, held.ask, held.node, grant, held.priority, held.daemon_set)

    def place(self, place: Place) -> None:
        ask, priority, turn = self.waiting.pop(place.pod)
        parts = {} if place.grant is None else {device: amount for device, _, amount in place.grant.parts}
        self.pods[place.pod] = Held(place.node, ask, parts, bound=False, turn=turn, priority=priority)

    def _arrive(self, key: str, ask: Ask, priority: int) -> None:
        if key in self.pods or key in self.strays:
            return
        if key in self.waiting and self.waiting[key][:2] == (ask, priority):
            return
        self.waiting[key] = (ask, priority, self.turns)
        self.turns += 1

    def _bind(self, event: PodBound) -> None:
        self.waiting.pop(event.key, None)
        self.strays.pop(event.key, None)
        held = self.pods.pop(event.key, None)
        if event.node not in self.nodes:
            self.strays[event.key] = event
            return
        given = None if event.grant is None else {device: amount for device, _, amount in event.grant.parts}
        if held is not None and held.node == event.node and held.ask == event.ask and given in (None, held.parts):
            self.pods[event.key] = Held(
                held.node, held.ask, held.parts, True, held.daemon_set, held.turn, held.priority, held.guessed
            )
            return
        if held is not None and held.node != event.node:
            self._guess_again(held.node)
        guessed = given is None and event.ask.devices is not None
        parts = self.tightest(event.node, event.ask.devices, forced=True) if given is None else given
        self.pods[event.key] = Held(event.node, event.ask, parts or {}, True, event.daemon_set, guessed=guessed)
        self._guess_again(event.node)

    def _guess_again(self, name: str, changed: bool = False) -> None:
        """Where devices are asked for twice, pods of which nothing is known may hold others."""
        if not changed and min(self._left(name), default=0) >= 0:
            return
        again = {key: held for key, held in self.pods.items() if held.node == name and held.guessed}
        for key in again:
            del self.pods[key]
        for key, held in again.items():
            held.parts = self.tightest(name, held.ask.devices, forced=True) or {}
            self.pods[key] = held

    # -- amounts -------------------------------------------------------------------------------------------------

    def on(self, name: str) -> list[Held]:
        return [held for held in self.pods.values() if held.node == name]

    def free(self, name: str, resource: str) -> int:
        left = self.nodes[name].allocatable.get(resource, 0)
        owed = [ask for daemon_set, ask in self.daemon_sets.items() if self.owes(name, daemon_set, ask)]
        for ask in [*(held.ask for held in self.on(name)), *owed]:
            left -= 1 if resource == "pods" else ask.request(resource)
        return left

    def pieces(self, name: str) -> list[int]:
        return self._left(name)[: self.nodes[name].gpus]

    def _left(self, name: str) -> list[int]:
        """Of the devices that were there once as well, which have nothing and may be asked for still."""
        here = [FULL] * self.nodes[name].gpus
        left = [*here, *[0] * (64 - len(here))]
        for held in self.on(name):
            for device, amount in held.parts.items():
                left[device] -= amount
        return left

    def to_have(self, name: str) -> list[int]:
        """What can be had of each device: what is missing on some is taken from the emptiest."""
        left = self._left(name)
        missing = -sum(piece for piece in left if piece < 0)
        for device in sorted(range(len(left)), key=lambda device: (-left[device], device)):
            taken = max(min(left[device], missing), 0)
            missing -= taken
            left[device] -= taken
        return [max(piece, 0) for piece in left][: self.nodes[name].gpus]

    def owes(self, name: str, daemon_set: str, ask: Ask) -> bool:
        if not self.may_use(name, ask, ask.tolerations):
            return False
        return not any(held.daemon_set == daemon_set for held in self.on(name))

    def tightest(self, name: str, demand: Demand | None, *, forced: bool = False) -> Parts | None:
        """The choice of the policies without one of their own; forced, the emptiest devices when none fits."""
        left = self.to_have(name)
        match demand:
            case None:
                return {}
            case WholeGpus(count):
                empty = [device for device, piece in enumerate(left) if piece == FULL][:count]
                chosen, amount = (empty if len(empty) == count else []), FULL
            case GpuShare(milli):
                fitting = sorted((piece, device) for device, piece in enumerate(left) if piece >= milli)
                count, chosen, amount = 1, [device for _, device in fitting[:1]], milli
        if not chosen and forced:
            left = self.pieces(name)
            chosen = sorted(range(len(left)), key=lambda device: (-left[device], device))[:count]
        return dict.fromkeys(chosen, amount) if chosen or forced else None

    # -- rules ---------------------------------------------------------------------------------------------------

    def may_use(self, name: str, ask: Ask, tolerations: tuple[Toleration, ...]) -> bool:
        """The rules about the node itself."""
        node = self.nodes[name]
        labels = dict(node.labels)
        if node.gpu_model:
            labels[MODEL_LABEL] = node.gpu_model
        if ask.node_name and ask.node_name != name:
            return False
        if node.unschedulable and not any(toleration.tolerates(UNSCHEDULABLE) for toleration in tolerations):
            return False
        if not ask.nodes.matches(name, labels) or untolerated(node.taints, tolerations) is not None:
            return False
        return not ask.gpu_models or labels.get(MODEL_LABEL) in ask.gpu_models

    def has_room(self, name: str, ask: Ask) -> bool:
        """Amounts, devices and ports, whatever the rules say."""
        if self.free(name, "pods") < 1:
            return False
        if any(amount > 0 and self.free(name, resource) < amount for resource, amount in ask.requests):
            return False
        if ask.devices is not None and self.tightest(name, ask.devices) is None:
            return False
        taken = [port for held in self.on(name) for port in held.ask.host_ports]
        return not any(clash(port, other) for port in ask.host_ports for other in taken)

    def fits(self, name: str, ask: Ask) -> bool:
        return self.may_use(name, ask, ask.tolerations) and self.has_room(name, ask)

    def fitting(self, ask: Ask) -> set[str]:
        return {name for name in self.nodes if self.fits(name, ask)}

    def in_line(self) -> list[str]:
        return sorted(self.waiting, key=lambda key: (-self.waiting[key][1], self.waiting[key][2]))


def clash(one: HostPort, other: HostPort) -> bool:
    if (one.port, one.protocol) != (other.port, other.protocol):
        return False
    every = ("", "0.0.0.0")  # noqa: S104 - an address to compare, not to bind
    return one.ip in every or other.ip in every or one.ip == other.ip
