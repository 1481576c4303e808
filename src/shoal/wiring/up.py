"""A server and who lives beside it, in one loop: what `shoal up` runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from shoal.client.port import Api
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.apiserver.server.run import serve
from shoal.wiring.child_processes import Child
from shoal.wiring.cluster_clock import OwnClock, clock_of, go_on, keep, moment, note
from shoal.wiring.cluster_options import ClusterOptions
from shoal.wiring.process_tasks import ProcessTasks

if TYPE_CHECKING:
    from shoal.embedded.apiserver.server.control_plane import ControlPlane
    from shoal.embedded.apiserver.settings import Settings
    from shoal.wiring.run_choice import RunChoice

_SYSTEM, _AUTHENTICATED = "system:serviceaccounts", "system:authenticated"
_CACHES, _FLEET, _SHOAL = "system:kube-controller-manager", "system:shoal:fleet", "system:shoal"
_HOOKS = ("admissionregistration.k8s.io", "mutatingwebhookconfigurations")
_PATIENCE_S = 30.0
Show = Callable[[ProcessTasks, Callable[[], None]], Coroutine[Any, Any, None]]
"""Looks at what lives until it is cancelled, or ends it all by calling its last argument."""


def up(settings: Settings, cast: ClusterOptions, ready: Callable[[str], None], show: Show | None = None) -> None:
    """Blocks until SIGINT or SIGTERM. `ready` is called with the URL once the nodes are ready."""

    @asynccontextmanager
    async def beside(plane: ControlPlane, _: str, stop: Callable[[], None]) -> AsyncIterator[None]:
        life = ProcessTasks(
            _as(plane, Actor("admin", ("system:masters", _AUTHENTICATED)), "shoal"), _caches(plane), plane.clock
        )
        try:
            await _keep_time(life, clocks[0])
            await _settle(life, plane, cast)
            if show is not None:
                life.start("board", lambda: show(life, stop))
            yield
        finally:
            await life.end()

    clocks: list[OwnClock] = []

    def make_clock() -> OwnClock:
        clocks.append(clock_of(cast.speed))
        return clocks[0]

    serve(settings, ready, beside, make_clock)


async def _keep_time(life: ProcessTasks, clock: OwnClock) -> None:
    await go_on(clock, life.api)
    life.start("clock", lambda: keep(clock, life.api))
    life.at_end(lambda: note(clock, life.api))


async def _settle(life: ProcessTasks, plane: ControlPlane, cast: ClusterOptions) -> None:
    if any(True for _ in plane.stage.state.reader.all(*_HOOKS)) and cast.shoal is None:
        await _forget_hooks(life, cast)
    if cast.is_alone:
        return
    # Imported here: a server alone is up before half of this is read.
    from shoal.wiring.foreign_kinds import provide_foreign
    from shoal.wiring.provided import provide_storage

    # Another project's controllers may do the rest, and claims without a class wait for none of them.
    await provide_storage(life.api)
    if cast.has_foreign:
        await provide_foreign(life.api)
    if cast.shoal is not None:
        await _start_hook(life, plane, cast.shoal)
    if cast.controllers or cast.children:
        await _start_controllers(life, plane, cast)
    figures: Callable[[], str] = str
    gates_stand = None
    if cast.shoal is not None:
        gates_stand, figures = await _start_shoal(life, plane, cast.shoal)
    if cast.children:
        await _start_children(life, cast)
    life.start("caches", life.informers.run)
    if cast.machines:
        await _start_nodes(life, plane, cast, figures)
    if gates_stand is not None:
        await gates_stand()


async def _start_nodes(
    life: ProcessTasks, plane: ControlPlane, cast: ClusterOptions, figures: Callable[[], str]
) -> None:
    from shoal.wiring.nodes import start_nodes
    from shoal.wiring.provided import provide_metrics

    fleet, ports, ca = await start_nodes(life, _as(plane, Actor(_FLEET, (_AUTHENTICATED,)), "kubelet"), cast, figures)
    await life.nodes_ready(fleet.names(), _PATIENCE_S, are_tended=bool(cast.controllers))
    await provide_metrics(life.api, ports, ca)


async def _start_children(life: ProcessTasks, cast: ClusterOptions) -> None:
    since = ("--clock", str(moment(life.clock)))
    children = [Child([*command, *since]) for command in cast.children]
    for child in children:
        life.start("a client process", child.run)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE_S):
            for child in children:
                await child.is_ready.wait()


async def _start_hook(life: ProcessTasks, plane: ControlPlane, choice: RunChoice) -> None:
    """Before jobs or pods are created: the configuration of an earlier process refers to a closed port."""
    from shoal.wiring.hooks import start_webhook

    hook = start_webhook(life, _as(plane, Actor(_SHOAL, (_AUTHENTICATED,)), "shoal-webhook"), choice, is_beside=True)
    if hook is not None:
        await hook.stands()


async def _forget_hooks(life: ProcessTasks, cast: ClusterOptions) -> None:
    """Unless a process of this cluster replaces them, they refer to a closed port."""
    from shoal.wiring.hooks import take_away_former

    if not any(command[0] == "run" for command in cast.children):
        await take_away_former(life.api)


async def _start_shoal(
    life: ProcessTasks, plane: ControlPlane, choice: RunChoice
) -> tuple[Callable[[], Awaitable[None]] | None, Callable[[], str]]:
    """What to wait for once the caches run, and what is measured."""
    from shoal.wiring.metrics_server import telemetry_beside
    from shoal.wiring.policies_in_force import gates_stand
    from shoal.wiring.shoal import start_shoal
    from shoal.wiring.standing_by import work_in_turn

    telemetry = telemetry_beside(choice, life.clock)
    gates: list[Callable[[], Awaitable[None]]] = []

    def way_in(name: str) -> Api:
        return telemetry.observed(_as(plane, Actor(_SHOAL, (_AUTHENTICATED,)), name))

    async def at_once() -> None:
        gates.append(partial(gates_stand, life, await start_shoal(life, way_in, choice, telemetry), choice))

    async def later() -> None:
        inner = life.inner(lambda _: _caches(plane))
        try:
            await start_shoal(inner, way_in, choice, telemetry)
            inner.start("caches", inner.informers.run)
            await asyncio.Event().wait()
        finally:
            await inner.end()

    own = _as(plane, Actor(_SHOAL, (_AUTHENTICATED,)), "shoal")
    await work_in_turn(life, own, choice.own.leader_election, at_once, later)
    return (gates[0] if gates else None), telemetry.text


def _as(plane: ControlPlane, actor: Actor, agent: str) -> Api:
    return InsideApi(plane, actor, agent)


def _caches(plane: ControlPlane) -> Api:
    return _as(plane, Actor(_CACHES, (_AUTHENTICATED,)), "shoal")


async def _start_controllers(life: ProcessTasks, plane: ControlPlane, cast: ClusterOptions) -> None:
    """Those that need the server's keys stay with it, wherever the others are."""
    from shoal.wiring.controllers import own_controllers

    def as_(user: str, name: str) -> Api:
        return _as(plane, _controller(user), name)

    life.start_controllers(cast.controllers, as_)
    for name, (user, maker) in own_controllers(plane).items():
        life.start_controller(name, as_(user, name), maker)


def _controller(user: str) -> Actor:
    if ":" in user:
        return Actor(user, (_AUTHENTICATED,))
    user = f"system:serviceaccount:kube-system:{user}"
    return Actor(user, (_SYSTEM, f"{_SYSTEM}:kube-system", _AUTHENTICATED))
