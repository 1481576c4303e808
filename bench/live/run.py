"""All figures of `shoal run`, each beside its bar.

    python -m bench.live [--quick] [--kubeconfig FILE]
    python -m bench.live [--quick] --queues kai volcano
    python -m bench.live [--quick] --history [--pairs N]

The server is a `shoal up` without nodes and controllers in a process of its own, or the cluster of a kubeconfig (with
certificates inside), which is filled with made-up nodes and pods that go again at the end: take one made for it. `shoal
run` is a second process and the client that creates and watches a third, on one machine. With `--queues` there is one
figure for each project: the bindings a second of the same backlog in its queues, of those without queues. With
`--history`: what recording which pod held which device costs, by turns with and without it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import msgspec
import uvloop
from rich.console import Console

from bench.cluster import objects
from bench.cluster.accounts import processor_s, resident_mb
from bench.cluster.figures import Figure, table
from bench.cluster.following import Follower, newest_revision
from bench.cluster.storm import Ask, connections, storm
from bench.cluster.wire import Connection, Target
from bench.live import recorder
from bench.live.process import SCHEDULER, RunProcess
from bench.live.queues import PROJECTS, Backlog, backlog, figure
from build.cluster_server import ServerProcess

_IN_FLIGHT = 64
_GANG_LABELS = "pod-group.scheduling.sigs.k8s.io/name", "pod-group.scheduling.sigs.k8s.io/min-available"
_PATIENCE_S = 300.0


class _Size(msgspec.Struct, frozen=True):
    nodes: int
    pods: int
    gang: int
    single: int
    many_nodes: int
    many_pods: int


_FULL = _Size(1_000, 5_000, 512, 200, 5_000, 50_000)
_QUICK = _Size(200, 1_000, 64, 50, 500, 4_000)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fifth to a tenth of everything")
    parser.add_argument("--kubeconfig", type=Path, help="a cluster of your own, made for this")
    parser.add_argument(
        "--queues", nargs="+", choices=PROJECTS, default=[], help="compare with queues of these projects"
    )
    parser.add_argument("--history", action="store_true", help="what recording the history costs")
    parser.add_argument("--pairs", type=int, default=4, help="of runs with and without the recorder (4)")
    chosen = parser.parse_args(arguments)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 220)
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before")
    with tempfile.TemporaryDirectory(prefix="shoal-live-") as name:
        size = _QUICK if chosen.quick else _FULL
        if chosen.history:
            figures = uvloop.run(_history_figures(Path(name), size, chosen.pairs))
        elif chosen.queues:
            figures = uvloop.run(_queue_figures(Path(name), size, chosen.queues))
        else:
            figures = uvloop.run(_figures(Path(name), size, chosen.kubeconfig))
    console.print(table(figures))
    return 0


async def _figures(folder: Path, size: _Size, given: Path | None) -> list[Figure]:
    found = []
    with _server(folder / "raw", given) as kubeconfig:
        _note("binding without thinking")
        raw = await _raw_rate(kubeconfig, size)
        if given is not None:
            await _emptied(given, size, size.pods)
    with _server(folder / "work", given) as kubeconfig:
        _note("a backlog, a gang, single pods")
        found += await _work(kubeconfig, folder / "work.log", size, raw)
        if given is not None:
            await _emptied(given, size, size.pods + size.gang + size.single)
    if given is None:
        with _server(folder / "many", given) as kubeconfig:
            _note("many pods")
            found += await _many(kubeconfig, folder / "many.log", size)
    return found


async def _queue_figures(folder: Path, size: _Size, projects: Sequence[str]) -> list[Figure]:
    """The best of two; the first round compiles the modules for those that follow, and is not counted."""
    best: dict[str, Backlog] = {}
    for attempt in range(3):
        for project in (*projects, ""):
            with _server(folder / f"{project or 'plain'}-{attempt}", None) as kubeconfig:
                _note(f"a backlog in queues of {project}" if project else "a backlog without queues")
                found = await backlog(kubeconfig, folder / "queues.log", (size.nodes, size.pods), project)
                best[project] = max(best[project], found) if attempt > 1 else found
    return [figure(project, best[""], best[project]) for project in projects]


async def _history_figures(folder: Path, size: _Size, pairs: int) -> list[Figure]:
    """The first pair compiles the modules for those that follow, and is not counted."""
    found: dict[bool, list[recorder.Bound]] = {False: [], True: []}
    for attempt in range(pairs + 1):
        # Each is first as often as the other.
        for is_recorded in (False, True) if attempt % 2 else (True, False):
            with _server(folder / f"{attempt}-{is_recorded}", None) as kubeconfig:
                _note("with the recorder" if is_recorded else "without the recorder")
                of_run = kubeconfig.parent
                one = await recorder.bound(kubeconfig, of_run, (size.nodes, size.pods), is_recorded=is_recorded)
            if attempt:
                found[is_recorded].append(one)
    return recorder.figures(found[False], found[True], size.pods)


@contextmanager
def _server(folder: Path, given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    folder.mkdir()
    server = ServerProcess(folder, "--history-events", "400000")
    try:
        yield server.kubeconfig
    finally:
        server.stop()


async def _raw_rate(kubeconfig: Path, size: _Size) -> float:
    """The client that costs nearly nothing, with what it binds made up beforehand."""
    target = Target(kubeconfig)
    lines = await connections(target, _IN_FLIGHT)
    await _fill(lines, size.nodes, size.pods)
    follower = await Follower.open(target)
    following = asyncio.create_task(follower.until(size.pods))
    seconds = await storm(lines, objects.bind_pods(0, size.pods, size.nodes))
    await asyncio.wait_for(following, _PATIENCE_S)
    _close(lines)
    follower.close()
    return size.pods / seconds


async def _fill(lines: Sequence[Connection], nodes: int, pods: int) -> None:
    await storm(lines, objects.create_nodes(nodes))
    await storm(lines, objects.open_nodes(nodes))
    await storm(lines, objects.create_pods(0, pods, SCHEDULER))


async def _emptied(given: Path, size: _Size, pods: int) -> None:
    """A server that is not thrown away is as it was before."""
    lines = await connections(Target(given), _IN_FLIGHT)
    await storm(lines, objects.delete_pods(pods))
    await storm(lines, objects.delete_nodes(size.nodes))
    _close(lines)


async def _check_bound(line: Connection, pods: int) -> None:
    """The events that were counted must have been bindings."""
    code, body = await line.answer(b"GET", b"/api/v1/pods?fieldSelector=spec.nodeName%3D&limit=1")
    waiting = msgspec.json.decode(body)["items"] if code == 200 else None
    if waiting != []:
        raise RuntimeError(f"not all {pods:,} pods are bound: {body[:300]!r}")


async def _work(kubeconfig: Path, log: Path, size: _Size, raw: float) -> list[Figure]:
    target = Target(kubeconfig)
    lines = await connections(target, _IN_FLIGHT)
    await _fill(lines, size.nodes, size.pods)
    # The first one compiles the modules for all that follow.
    started_s = [await _started_alone_s(kubeconfig, log) for _ in range(2)][-1]
    follower = await Follower.open(target)
    following = asyncio.create_task(follower.until(size.pods, keeps_moments=True))
    run = RunProcess(kubeconfig, log)
    try:
        await asyncio.wait_for(following, _PATIENCE_S)
        used_s = processor_s(run.pid)
        moments = sorted(follower.arrived.values())
        follower.close()
        await _check_bound(lines[0], size.pods)
        seconds = moments[-1] - moments[0]
        rate = size.pods / seconds
        await _settled(run.pid)
        with_events_s = processor_s(run.pid)
        later_ms = 1000 * (with_events_s - used_s) / size.pods
        found = [
            Figure(
                f"{size.pods:,} waiting one-GPU pods on {size.nodes:,} nodes: bindings a second",
                rate,
                least=1500,
                beside=f"{rate / raw:.0%} of {raw:,.0f} by a client that does not think; a real pair: 385 of 2,150",
            ),
            Figure("... of the server's raw binding rate", 100 * rate / raw, " %", least=60),
            Figure(
                "processor per bound pod, start of the program and Events left out",
                1000 * (used_s - started_s) / size.pods,
                " ms",
                most=0.4,
                beside=f"start {started_s:.2f} s; Events and what followed {later_ms:.2f} ms more",
            ),
        ]
        found.append(await _gang(target, lines, size))
        found += await _single(target, lines, size)
    finally:
        run.stop()
        _close(lines)
    return found


async def _started_alone_s(kubeconfig: Path, log: Path) -> float:
    """What the program costs before it has bound anything: imports, caches, facts. A second one, for other pods."""
    run = RunProcess(kubeconfig, log, "--scheduler-name", "nobody")
    try:
        await asyncio.to_thread(run.wait_ready)
        await _settled(run.pid)
        return processor_s(run.pid)
    finally:
        run.stop()


async def _settled(pid: int) -> None:
    """Returns when the process has nothing more to do."""
    before = processor_s(pid)
    while True:
        await asyncio.sleep(1.0)
        now = processor_s(pid)
        if now - before < 0.02:
            return
        before = now


async def _gang(target: Target, lines: Sequence[Connection], size: _Size) -> Figure:
    labels = dict(zip(_GANG_LABELS, ("many", str(size.gang)), strict=True))
    first = size.pods
    follower = await Follower.open(target)
    # Each is created and bound: two events.
    following = asyncio.create_task(follower.until(2 * size.gang, keeps_moments=True))
    created_s = await storm(lines, objects.create_pods(first, size.gang, SCHEDULER, labels))
    last_created = perf_counter()
    await asyncio.wait_for(following, _PATIENCE_S)
    follower.close()
    await _check_bound(lines[0], size.gang)
    beside = f"created in {created_s:.2f} s"
    return Figure(
        f"gang of {size.gang}: last pod created to last pod bound",
        max(follower.arrived.values()) - last_created,
        " s",
        most=1.5,
        beside=beside,
    )


async def _single(target: Target, lines: Sequence[Connection], size: _Size) -> list[Figure]:
    """One pod at a time on a cluster with nothing else to do."""
    line, waits = lines[0], []
    first = size.pods + size.gang
    for index in range(first, first + size.single):
        follower = await Follower.open(target)
        following = asyncio.create_task(follower.until(2, keeps_moments=True))
        (ask,) = objects.create_pods(index, 1, SCHEDULER)
        await _sent(line, ask)
        created = perf_counter()
        await asyncio.wait_for(following, _PATIENCE_S)
        waits.append(max(follower.arrived.values()) - created)
        follower.close()
        await asyncio.sleep(0.02)
    waits.sort()
    beside = f"{size.single} pods, one after the other; from the answer to the creation to the event of the binding"
    return [
        Figure("created to bound, idle cluster, median", 1000 * waits[len(waits) // 2], " ms", most=15, beside=beside),
        Figure("... 99 of 100", 1000 * waits[min(len(waits) - 1, len(waits) * 99 // 100)], " ms", most=60),
    ]


async def _sent(line: Connection, ask: Ask) -> None:
    code, body = await line.answer(ask.method, ask.path, ask.body)
    if code != 201:
        raise RuntimeError(f"not created: {code} {body[:300]!r}")


async def _many(kubeconfig: Path, log: Path, size: _Size) -> list[Figure]:
    """A cluster as full as it may be, and one pod that waits when the scheduler starts."""
    target = Target(kubeconfig)
    lines = await connections(target, _IN_FLIGHT)
    await _fill(lines, size.many_nodes, size.many_pods)
    await storm(lines, objects.bind_pods(0, size.many_pods, size.many_nodes))
    (waiting,) = objects.create_pods(size.many_pods, 1, SCHEDULER)
    await _sent(lines[0], _small(waiting))
    follower = await Follower.open(target, await newest_revision(lines[0]))
    following = asyncio.create_task(follower.until(1))
    began = perf_counter()
    run = RunProcess(kubeconfig, log)
    try:
        await asyncio.wait_for(following, _PATIENCE_S)
        first_s = perf_counter() - began
        await _settled(run.pid)
        memory = resident_mb(run.pid)
    finally:
        run.stop()
        follower.close()
        _close(lines)
    what = f"{size.many_nodes:,} nodes and {size.many_pods:,} pods"
    return [
        Figure(f"resident with {what}", memory, " MB", most=500, beside="kube-scheduler, a tenth of it: 170 MB"),
        Figure(
            f"start with {what} to the first pod bound", first_s, " s", most=6, beside="from the start of the program"
        ),
    ]


def _small(ask: Ask) -> Ask:
    """The same pod with a little of the processor only: the nodes are full."""
    pod = msgspec.json.decode(ask.body)
    small = {"cpu": "1m"}
    pod["spec"]["containers"][0]["resources"] = {"requests": small, "limits": small}
    return Ask(ask.method, ask.path, msgspec.json.encode(pod))


def _close(lines: Sequence[Connection]) -> None:
    for line in lines:
        line.close()


def _note(text: str) -> None:
    print(f"  {text}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
