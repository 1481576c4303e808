"""Generates the log of a simulated container from the recorded facts of its run.

No log is stored, so logs survive the process that ran the pods. Lines of `shoal.dev/log` appear one per second from the
start; a program without them prints its start and end. A GPU program that ends by itself prints the loss of its steps;
one that does not end is a server, and prints that it is ready.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shoal.client.kubelet.pod_facts import Container, PodFacts
from shoal.client.kubelet.pod_run import ContainerRun, Ended
from shoal.embedded.kubelets import pod_annotations as restart_requests
from shoal.embedded.kubelets.node_view import LogLine

_STEP_S = 10.0
_MOST_LINES = 1_000


def lines(
    facts: PodFacts, spec: Container, one: ContainerRun, asked: tuple[float, bool], known: Sequence[str] | None = None
) -> list[LogLine]:
    """`asked`: the time of the request, and whether it is for the previous run. `known`: the output of a known program,
    which is printed at once.
    """
    now_s, previous = asked
    if one.is_alive and not previous:
        span = (one.started_s, now_s)
        return sorted(_lines(facts, spec, span, None, known), key=lambda line: line.at_s)
    ended = one.ended
    if ended is None or not ended.started_s:
        return []
    span = (ended.started_s, ended.finished_s)
    return sorted(_lines(facts, spec, span, ended, known), key=lambda line: line.at_s)


def _lines(
    facts: PodFacts, spec: Container, span: tuple[float, float], ended: Ended | None, known: Sequence[str] | None
) -> Iterator[LogLine]:
    start_s, until_s = span
    said = restart_requests.text(facts.metadata.annotations, "log", spec.name)
    if said is not None:
        for at, text in enumerate(said.splitlines()[:_MOST_LINES]):
            if ended is not None or start_s + at <= until_s:
                yield LogLine(min(start_s + at, until_s), text)
    elif known is not None:
        for text in known:
            yield LogLine(start_s, text)
    else:
        yield LogLine(start_s, f"starting {spec.name} ({spec.image})")
        if not _uses_gpus(spec):
            pass
        elif _serves(facts, spec):
            yield LogLine(start_s, "ready")
        else:
            steps = int((until_s - start_s) / _STEP_S)
            for step in range(max(steps - _MOST_LINES, 0) + 1, steps + 1):
                yield LogLine(start_s + step * _STEP_S, f"step {step * 10}: loss {2.5 / (1 + step) ** 0.3:.4f}")
    if ended is None:
        return
    if ended.message:
        yield LogLine(ended.finished_s, ended.message)
    if said is None and known is None:
        yield LogLine(ended.finished_s, "done" if ended.code == 0 else f"exiting with code {ended.code}")


def _uses_gpus(spec: Container) -> bool:
    return any("nvidia.com/" in name for name in spec.resources.limits)


def _serves(facts: PodFacts, spec: Container) -> bool:
    default = "Never" if spec in facts.spec.init_containers else facts.spec.restart_policy
    if (spec.restart_policy or default) != "Always":
        return False
    return restart_requests.duration(facts.metadata.annotations, "run-for", spec.name) is None
