"""Runs this machine as a node of a cluster that it joined: `shoal join`."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from shoal.agent.kubelet.node_identity import JoinedCluster, NodeIdentity
from shoal.agent.kubelet.own_objects import OwnObjectsApi
from shoal.agent.kubelet.server_connections import NodeRemovedError, ServerConnections
from shoal.client.http.settings import KubeSettings
from shoal.client.informers import Informers
from shoal.client.kubelet.node_joining import REMOVED
from shoal.client.port import Api
from shoal.client.refusals import UnauthorizedError
from shoal.units.errors import UserError
from shoal.wiring.joining import JoinCommand, join, keep_renewed, renew
from shoal.wiring.process import Pacing, client_for, live
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.this_machine import MachineOfNode, StartedMachine, start_this_machine, stop_pods_of_this_machine

_PATIENCE_S = 30.0
_SETTINGS = KubeSettings(manager="kubelet")


class RunOptions(msgspec.Struct, frozen=True):
    """How the machine runs pods."""

    fake_gpus: str = ""
    runtime_endpoint: str = ""
    gpu_config: Path | None = None


class Reports(msgspec.Struct, frozen=True):
    """What the user reads."""

    ready: Callable[[str], None]
    """Called with the name of the node and the address of the server."""
    unanswered: Callable[[str], None]
    """Called while the server does not answer."""


def join_cluster(command: JoinCommand, identity: NodeIdentity) -> JoinedCluster:
    return asyncio.run(join(command, identity))


def run_joined(cluster: JoinedCluster, identity: NodeIdentity, options: RunOptions, reports: Reports) -> None:
    """Blocks until SIGINT or SIGTERM; pods continue then. Raises UserError if the node was removed; its pods are
    stopped then."""
    access = identity.access(cluster)

    async def begin(tasks: ProcessTasks) -> None:
        own = OwnObjectsApi(client_for(tasks, access, _SETTINGS), cluster.node)
        tasks.informers = Informers(own, tasks.clock, random.Random())

        def client(_: str) -> Api:
            return client_for(tasks, access, _SETTINGS)

        machine = MachineOfNode(
            name=cluster.node,
            fake_gpus=options.fake_gpus,
            client_ca=identity.authority(),
            namespace_labels=own.namespace_labels,
            runtime_endpoint=options.runtime_endpoint,
            gpu_config=options.gpu_config,
        )
        started = await start_this_machine(tasks, client, identity.folder, machine)
        tasks.start("caches", tasks.informers.run)
        renewed = partial(renew, cluster, identity)
        tasks.start("the certificate", lambda: keep_renewed(identity, tasks.clock, renewed))
        connections = ServerConnections(
            lambda: identity.access(cluster), cluster.node, started.ports.kubelet_port, tasks.clock
        )
        running = asyncio.ensure_future(connections.run())
        try:
            works = asyncio.ensure_future(_works(tasks, started, connections))
            await asyncio.wait((running, works), return_when=asyncio.FIRST_COMPLETED)
            works.cancel()
            if not running.done():
                reports.ready(f"node {cluster.node} of {cluster.server}")
            await running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    try:
        live(access, Pacing(), begin, _SETTINGS, unanswered=reports.unanswered)
    except (NodeRemovedError, UnauthorizedError) as error:
        if isinstance(error, UnauthorizedError) and error.reason != REMOVED:
            raise
        asyncio.run(stop_pods_of_this_machine(identity.folder, access))
        identity.leave()
        fix = "its pods were stopped; if that was wrong, join again with a new token"
        raise UserError(error.what, fix=fix) from None


async def _works(tasks: ProcessTasks, started: StartedMachine, connections: ServerConnections) -> None:
    """Returns when the node is ready and the server can reach its pods, or after a timeout."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE_S):
            await tasks.nodes_ready((started.node,), _PATIENCE_S)
            await started.has_taken_over.wait()
            await connections.connected.wait()
