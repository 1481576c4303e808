"""Runs an embedded API server with its controllers and nodes in one event loop: `shoal up`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from shoal.client.port import Api
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.apiserver.server.run import serve
from shoal.wiring.child_processes import ChildProcess
from shoal.wiring.cluster_clock import OwnClock, clock_of, moment, restore, store, store_regularly
from shoal.wiring.cluster_options import ClusterOptions
from shoal.wiring.process_tasks import ProcessTasks

if TYPE_CHECKING:
    from shoal.embedded.apiserver.server.control_plane import ControlPlane
    from shoal.embedded.apiserver.settings import Settings
    from shoal.embedded.kubelets.endpoint.external_metrics_routes import ExternalSource
    from shoal.embedded.kubelets.node_view import MeasuredNodes
    from shoal.wiring.run_choice import RunChoice
    from shoal.wiring.this_machine import StartedMachine

_AUTHENTICATED = "system:authenticated"
_CACHES, _FLEET, _SHOAL = "system:kube-controller-manager", "system:shoal:fleet", "system:shoal"
_WEBHOOKS = ("admissionregistration.k8s.io", "mutatingwebhookconfigurations")
_PATIENCE_S = 30.0
Show = Callable[[ProcessTasks, Callable[[], None]], Coroutine[Any, Any, None]]
"""Shows the state of the cluster until it is cancelled; it can end the cluster by calling its last argument."""


def up(
    settings: Settings,
    options: ClusterOptions,
    ready: Callable[[str], None],
    show: Show | None = None,
    say: Callable[[str], object] = str,
) -> None:
    """Blocks until SIGINT or SIGTERM. `ready` is called with the URL once the nodes are ready; `say` is called before,
    with what of a snapshot was reproduced."""

    @asynccontextmanager
    async def beside(plane: ControlPlane, _: str, stop: Callable[[], None]) -> AsyncIterator[None]:
        tasks = ProcessTasks(
            _as(plane, Actor("admin", ("system:masters", _AUTHENTICATED)), "shoal"), _caches(plane), plane.clock
        )
        try:
            await _start_clock(tasks, clocks[0])
            await _start_parts(tasks, plane, options, say, accepts_machines=not settings.joining_fault)
            if show is not None:
                tasks.start("dashboard", lambda: show(tasks, stop))
            yield
        finally:
            await tasks.end()

    clocks: list[OwnClock] = []

    def make_clock() -> OwnClock:
        clocks.append(clock_of(options.speed))
        return clocks[0]

    serve(settings, ready, beside, make_clock)


async def _start_clock(tasks: ProcessTasks, clock: OwnClock) -> None:
    await restore(clock, tasks.api)
    tasks.start("clock", lambda: store_regularly(clock, tasks.api))
    tasks.at_end(lambda: store(clock, tasks.api))


async def _start_parts(
    tasks: ProcessTasks,
    plane: ControlPlane,
    options: ClusterOptions,
    say: Callable[[str], object],
    *,
    accepts_machines: bool,
) -> None:
    if any(True for _ in plane.context.state.reader.all(*_WEBHOOKS)) and options.shoal is None:
        await _remove_webhooks(tasks, options)
    if options.is_alone:
        return
    # Imported here: a server without controllers starts sooner.
    from shoal.wiring.foreign_kinds import provide_foreign
    from shoal.wiring.provided import provide_storage

    # Another project's controllers may provision the volumes, but claims without a class need a default class.
    await provide_storage(tasks.api)
    if options.has_foreign:
        await provide_foreign(tasks.api)
    if accepts_machines or options.this_machine is not None:
        from shoal.wiring.this_machine import provide_process_class

        await provide_process_class(tasks.api)
    if options.snapshot is not None:
        from shoal.embedded.snapshots.creation import create_snapshot

        # Before controllers: they would see pods without their owners, and jobs without their pods.
        for line in await create_snapshot(tasks.api, options.snapshot):
            say(line)
    if options.shoal is not None:
        await _start_webhook(tasks, plane, options.shoal)
    external: ExternalSource | None = None
    if options.controllers or options.children:
        await _start_controllers(tasks, plane, options)
        if options.has_foreign and options.machines:
            from shoal.wiring.scaled_objects import start_scaled_objects

            external = start_scaled_objects(tasks, plane, options.trigger_addresses)
    figures: Callable[[], str] = str
    gates: Callable[[], Awaitable[None]] | None = None
    if options.shoal is not None:
        gates, figures = await _start_shoal(tasks, plane, options.shoal)
    if options.children:
        await _start_children(tasks, options)
    tasks.start("caches", tasks.informers.run)
    served = _ServedByNodes(figures, external)
    await _start_all_nodes(tasks, plane, options, served, accepts_machines=accepts_machines)
    if gates is not None:
        await gates()


class _ServedByNodes(msgspec.Struct, frozen=True):
    """What the endpoint of the nodes serves besides their own."""

    figures: Callable[[], str]
    """Metrics, as text."""
    external: ExternalSource | None


async def _start_all_nodes(
    tasks: ProcessTasks,
    plane: ControlPlane,
    options: ClusterOptions,
    served: _ServedByNodes,
    *,
    accepts_machines: bool,
) -> None:
    from shoal.wiring.measured_nodes import AllNodes, JoinedUsage, serve_usage
    from shoal.wiring.provided import provide_metrics

    joined = machine = None
    if accepts_machines:
        joined = JoinedUsage(plane.joined, tasks.informers, tasks.clock)
        tasks.start("the usage of joined machines", joined.run)
    if options.this_machine is not None:
        machine = await _start_this_machine(tasks, plane, options, options.this_machine, joined)
    if options.machines or options.cloud is not None:
        others = AllNodes(None if machine is None else machine.view, joined)
        await _start_nodes(tasks, plane, options, served, others)
    elif machine is not None:
        await provide_metrics(tasks.api, machine.ports, machine.ca)
    elif joined is not None:
        await serve_usage(tasks, joined)


async def _start_nodes(
    tasks: ProcessTasks,
    plane: ControlPlane,
    options: ClusterOptions,
    served: _ServedByNodes,
    others: MeasuredNodes,
) -> None:
    from shoal.wiring.nodes import start_nodes
    from shoal.wiring.provided import EXTERNAL_APIS, provide_device_classes, provide_metric_apis, provide_metrics

    if any(machine.gives_by_claims for machine in options.machines):
        await provide_device_classes(tasks.api)
    fleet, ports, ca = await start_nodes(
        tasks,
        _as(plane, Actor(_FLEET, (_AUTHENTICATED,)), "kubelet"),
        options,
        served.figures,
        others=others,
        external=served.external,
    )
    await tasks.nodes_ready(fleet.names(), _PATIENCE_S, has_lifecycle=bool(options.controllers))
    await provide_metrics(tasks.api, ports, ca)
    await provide_metric_apis(tasks.api, ca)
    if served.external is not None:
        await provide_metric_apis(tasks.api, ca, EXTERNAL_APIS)


async def _start_this_machine(
    tasks: ProcessTasks, plane: ControlPlane, options: ClusterOptions, folder: Path, others: MeasuredNodes | None
) -> StartedMachine:
    from shoal.wiring.this_machine import MachineOfNode, start_this_machine

    def client(node: str) -> Api:
        return _as(plane, Actor(f"system:node:{node}", ("system:nodes", _AUTHENTICATED)), "kubelet")

    machine = MachineOfNode(runtime_endpoint=options.runtime_endpoint, gpu_config=options.gpu_config, others=others)
    started = await start_this_machine(tasks, client, folder, machine)
    await tasks.nodes_ready((started.node,), _PATIENCE_S, has_lifecycle=bool(options.controllers))
    return started


async def _start_children(tasks: ProcessTasks, options: ClusterOptions) -> None:
    since = ("--clock", str(moment(tasks.clock)))
    children = [ChildProcess([*command, *since]) for command in options.children]
    for child in children:
        tasks.start("a client process", child.run)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE_S):
            for child in children:
                await child.is_ready.wait()


async def _start_webhook(tasks: ProcessTasks, plane: ControlPlane, choice: RunChoice) -> None:
    """Before jobs or pods are created: the configuration of an earlier process refers to a closed port."""
    from shoal.wiring.webhook import start_webhook

    hook = start_webhook(tasks, _as(plane, Actor(_SHOAL, (_AUTHENTICATED,)), "shoal-webhook"), choice, is_beside=True)
    if hook is not None:
        await hook.ready()


async def _remove_webhooks(tasks: ProcessTasks, options: ClusterOptions) -> None:
    """Remove the webhooks of earlier processes, which refer to a closed port, unless a process of this cluster replaces
    them."""
    from shoal.wiring.webhook import remove_former_webhook

    if not any(command[0] == "run" for command in options.children):
        await remove_former_webhook(tasks.api)


async def _start_shoal(
    tasks: ProcessTasks, plane: ControlPlane, choice: RunChoice
) -> tuple[Callable[[], Awaitable[None]] | None, Callable[[], str]]:
    """Returns what to wait for once the caches run, and the text of the metrics."""
    from shoal.wiring.metrics_server import telemetry_beside
    from shoal.wiring.policies_in_force import wait_for_gates
    from shoal.wiring.shoal import start_shoal
    from shoal.wiring.standby import run_with_lease

    telemetry = telemetry_beside(choice, tasks.clock)
    gates: list[Callable[[], Awaitable[None]]] = []

    def client_for(name: str) -> Api:
        return telemetry.observed(_as(plane, Actor(_SHOAL, (_AUTHENTICATED,)), name))

    async def at_once() -> None:
        gates.append(partial(wait_for_gates, tasks, await start_shoal(tasks, client_for, choice, telemetry), choice))

    async def later() -> None:
        inner = tasks.inner(lambda _: _caches(plane))
        try:
            await start_shoal(inner, client_for, choice, telemetry)
            inner.start("caches", inner.informers.run)
            await asyncio.Event().wait()
        finally:
            await inner.end()

    own = _as(plane, Actor(_SHOAL, (_AUTHENTICATED,)), "shoal")
    await run_with_lease(tasks, own, choice.own, at_once, later)
    return (gates[0] if gates else None), telemetry.text


def _as(plane: ControlPlane, actor: Actor, agent: str) -> Api:
    return InsideApi(plane, actor, agent)


def _caches(plane: ControlPlane) -> Api:
    return _as(plane, Actor(_CACHES, (_AUTHENTICATED,)), "shoal")


async def _start_controllers(tasks: ProcessTasks, plane: ControlPlane, options: ClusterOptions) -> None:
    """Controllers that need the server's keys run in this process, wherever the others run."""
    from shoal.wiring.controllers import controller_actor, own_controllers

    def as_(user: str, name: str) -> Api:
        return _as(plane, controller_actor(user), name)

    tasks.start_controllers(options.controllers, as_)
    for name, (user, maker) in own_controllers(plane).items():
        tasks.start_controller(name, as_(user, name), maker)
