"""The same backlog without queues, and in queues of KAI or Volcano, whose discipline then decides in each cycle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.cluster import objects
from bench.cluster.accounts import processor_s
from bench.cluster.figures import Figure
from bench.cluster.following import Follower
from bench.cluster.storm import Ask, connections, storm
from bench.cluster.wire import Connection, Target
from bench.live.process import SCHEDULER, RunProcess
from shoal.embedded.apiserver.foreign.definitions import definitions

PROJECTS = ("kai", "volcano")
_GROUPS = {"kai": {"scheduling.run.ai"}, "volcano": {"scheduling.volcano.sh", "batch.volcano.sh", "bus.volcano.sh"}}
_IN_FLIGHT = 64
_PATIENCE_S = 300.0
_QUEUES = 20
_GANG = 8
_LEAST = 0.85
Queued = Callable[[Sequence[Ask]], tuple[list[Ask], list[Ask]]]
"""The objects that come first, and the pods in queues."""


class Backlog(NamedTuple):
    rate: float
    """Bindings a second."""
    used_ms: float
    """Time of the processor by bound pod, start of the program included."""


async def backlog(kubeconfig: Path, log: Path, size: tuple[int, int], project: str = "") -> Backlog:
    """`size`: nodes and pods."""
    nodes, pods = size
    target = Target(kubeconfig)
    lines = await connections(target, _IN_FLIGHT)
    await storm(lines, objects.create_nodes(nodes))
    await storm(lines, objects.open_nodes(nodes))
    first, asks = _QUEUED[project](objects.create_pods(0, pods, SCHEDULER))
    if project:
        await _serve(lines, project)
    await storm(lines, first)
    await storm(lines, asks)
    follower = await Follower.open(target)
    following = asyncio.create_task(follower.until(pods, keeps_moments=True))
    parts = f"scheduler,{project}" if project else "scheduler"
    run = RunProcess(kubeconfig, log, "--controllers", parts)
    try:
        await asyncio.wait_for(following, _PATIENCE_S)
        moments = sorted(follower.arrived.values())
        used_s = processor_s(run.pid)
    finally:
        run.stop()
        follower.close()
        for line in lines:
            line.close()
    return Backlog(pods / (moments[-1] - moments[0]), 1000 * used_s / pods)


async def _serve(lines: Sequence[Connection], project: str) -> None:
    """Define the kinds of the project, and wait until the server serves them."""
    groups = _GROUPS[project]
    found = [each for each in definitions() if each["spec"]["group"] in groups]
    path = b"/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await storm(lines[:1], [Ask(b"POST", path, msgspec.json.encode(each)) for each in found])
    for each in found:
        spec = each["spec"]
        version = next(one["name"] for one in spec["versions"] if one["served"])
        kind = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
        for _ in range(600):
            if (await lines[0].answer(b"GET", kind.encode()))[0] == 200:
                break
            await asyncio.sleep(0.1)


def figure(project: str, plain: Backlog, queued: Backlog) -> Figure:
    name = {"kai": "KAI's", "volcano": "Volcano's"}[project]
    rates = f"{queued.rate:,.0f} a second, {plain.rate:,.0f} without queues; {_QUEUES} queues"
    used = f"processor per pod {queued.used_ms:.2f} and {plain.used_ms:.2f} ms"
    what = f"bindings a second in {name} queues, of those without"
    return Figure(what, 100 * queued.rate / plain.rate, " %", least=100 * _LEAST, beside=f"{rates}; {used}")


def _plain(pods: Sequence[Ask]) -> tuple[list[Ask], list[Ask]]:
    return [], list(pods)


def _kai(pods: Sequence[Ask]) -> tuple[list[Ask], list[Ask]]:
    """Each pod is a group of its own."""
    endless = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"gpu": {"quota": 1, "limit": -1, "overQuotaWeight": 1}, "cpu": endless, "memory": endless}
    path = b"/apis/scheduling.run.ai/v2/queues"
    queues = [
        {
            "apiVersion": "scheduling.run.ai/v2",
            "kind": "Queue",
            "metadata": {"name": f"team-{index}"},
            "spec": {"resources": resources},
        }
        for index in range(_QUEUES)
    ]
    asks = []
    for index, ask in enumerate(pods):
        pod = msgspec.json.decode(ask.body)
        pod["metadata"]["labels"]["kai.scheduler/queue"] = f"team-{index % _QUEUES}"
        asks.append(Ask(ask.method, ask.path, msgspec.json.encode(pod)))
    return [Ask(b"POST", path, msgspec.json.encode(queue)) for queue in queues], asks


def _volcano(pods: Sequence[Ask]) -> tuple[list[Ask], list[Ask]]:
    """Gangs of eight pods."""
    group_version = "scheduling.volcano.sh/v1beta1"
    first = [
        Ask(
            b"POST",
            b"/apis/scheduling.volcano.sh/v1beta1/queues",
            msgspec.json.encode(
                {
                    "apiVersion": group_version,
                    "kind": "Queue",
                    "metadata": {"name": f"team-{index}"},
                    "spec": {"weight": 1},
                }
            ),
        )
        for index in range(_QUEUES)
    ]
    asks = []
    for index, ask in enumerate(pods):
        gang = f"gang-{index // _GANG}"
        if index % _GANG == 0:
            spec = {"minMember": min(_GANG, len(pods) - index), "queue": f"team-{index // _GANG % _QUEUES}"}
            body = {"apiVersion": group_version, "kind": "PodGroup", "metadata": {"name": gang}, "spec": spec}
            path = b"/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
            first.append(Ask(b"POST", path, msgspec.json.encode(body)))
        pod = msgspec.json.decode(ask.body)
        pod["metadata"].setdefault("annotations", {})["scheduling.k8s.io/group-name"] = gang
        asks.append(Ask(ask.method, ask.path, msgspec.json.encode(pod)))
    return first, asks


_QUEUED: dict[str, Queued] = {"": _plain, "kai": _kai, "volcano": _volcano}
