"""Shows the pods of this machine to the kubelet's endpoint: logs, commands and ports."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar

from shoal.agent.kubelet.kubelet import Kubelet
from shoal.agent.kubelet.log_lines import log_lines
from shoal.agent.kubelet.pod_on_node import PodOnNode
from shoal.agent.kubelet.runtime import ByteStream, Command, RunKey, StartRefused
from shoal.agent.kubelet.usage import MeasuredUse, UsageOfPods
from shoal.client.item import Obj
from shoal.client.kubelet.pod_status import status_of
from shoal.client.kubelet.probe_result import ProbeResult
from shoal.embedded.apiserver.streams.terminal import CommandOutput
from shoal.embedded.kubelets.node_view import LogLine, NodeView, Usage
from shoal.units.errors import TemporaryError, UserError

T = TypeVar("T")


class ThisMachineView:
    """Implements `NodeView`, `RealNodeView` and `NodeViews`."""

    def __init__(self, name: str, size: Usage) -> None:
        self.name = name
        self.kubelet: Kubelet | None = None
        self.measured: UsageOfPods | None = None
        self._size = size

    def node(self, name: str) -> NodeView | None:
        return self if name == self.name else None

    def names(self) -> Sequence[str]:
        return (self.name,)

    def pod(self, namespace: str, name: str) -> Obj | None:
        found = self.kubelet.find(namespace, name) if self.kubelet is not None else None
        return None if found is None else _shown(found)

    def log(self, pod_uid: str, container: str, *, previous: bool = False) -> Sequence[LogLine]:
        pod = self._pod(pod_uid)
        one = pod.run.container(container) if pod is not None else None
        if pod is None or one is None:
            return ()
        attempt = one.restarts - 1 if previous else one.restarts
        files = pod.runtime.log_files(RunKey(pod_uid, container, attempt))
        return [LogLine(at_s, text) for at_s, text in log_lines(files)]

    def is_running(self, pod_uid: str, container: str) -> bool:
        pod = self._pod(pod_uid)
        one = pod.run.container(container) if pod is not None else None
        return one is not None and one.is_alive

    async def open_command(self, pod_uid: str, container: str, command: Sequence[str], *, tty: bool) -> Command:
        pod, key = self._key(pod_uid, container)
        return await _opened(pod.runtime.run(key, command, tty=tty))

    async def attach(self, pod_uid: str, container: str, *, takes_input: bool) -> Command:
        pod, key = self._key(pod_uid, container)
        spec = pod.spec_of(container)
        has_input = takes_input and bool(spec.get("stdin"))
        return await _opened(pod.runtime.attach(key, has_input=has_input, tty=bool(spec.get("tty"))))

    async def forward_ports(self, pod_uid: str) -> ByteStream:
        pod = self._pod(pod_uid)
        if pod is None or pod.run.is_over:
            raise UserError("the pod does not run")
        return await _opened(pod.runtime.forward_ports(pod_uid))

    def run(self, pod_uid: str, container: str, command: Sequence[str]) -> CommandOutput:  # noqa: ARG002
        return CommandOutput(stderr="commands of this node run as processes\n", code=1)

    def usage(self) -> Usage:
        return Usage(0, 0) if self.measured is None else _usage(self.measured.machine)

    def size(self) -> Usage:
        return self._size

    def pod_usage(self) -> Sequence[tuple[Obj, dict[str, Usage]]]:
        """Of pods whose containers were measured."""
        if self.kubelet is None or self.measured is None:
            return ()
        found = []
        for uid, pod in self.kubelet.all().items():
            keys = (RunKey(uid, one.name, one.restarts) for one in pod.run.containers if one.is_alive)
            used = {key.container: _usage(one) for key in keys if (one := self.measured.of(key)) is not None}
            if used:
                found.append((_shown(pod), used))
        return found

    def probe_counts(self) -> Sequence[tuple[Obj, Mapping[ProbeResult, int]]]:
        pods = self.kubelet.all().values() if self.kubelet is not None else ()
        return [(pod.pod, pod.probed) for pod in pods if pod.probed]

    def dcgm(self) -> str:
        return ""

    def is_reachable(self) -> bool:
        return True

    def _pod(self, uid: str) -> PodOnNode | None:
        return self.kubelet.by_uid(uid) if self.kubelet is not None else None

    def _key(self, pod_uid: str, container: str) -> tuple[PodOnNode, RunKey]:
        pod = self._pod(pod_uid)
        one = pod.run.container(container) if pod is not None else None
        if pod is None or one is None:
            raise UserError(f"container {container} does not run")
        return pod, RunKey(pod_uid, container, one.restarts)


async def _opened(opening: Awaitable[T]) -> T:
    try:
        return await opening
    except StartRefused as refused:
        raise UserError(refused.message) from None
    except TemporaryError as error:
        raise UserError(error.what) from None


def _shown(pod: PodOnNode) -> Obj:
    return {**pod.pod, "status": status_of(pod.run, pod.facts, pod.address, pod.clock.seconds())}


def _usage(measured: MeasuredUse) -> Usage:
    return Usage(measured.cpu_milli, measured.memory_bytes, measured.cpu_s)
