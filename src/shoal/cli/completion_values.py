"""Completes the values of options and kinds: fixed words, and names of objects in the cluster.

Guarantees: an answer within two seconds or none, and no error messages, which would appear in the middle of the
command line. Only names are read from a cluster.

Rejected: a cache of names. The current cluster may be another one than last time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from shoal.cli.type_names import TYPE_NAMES

if TYPE_CHECKING:
    from shoal.client.kind import Kind
    from shoal.client.port import Api

_PATIENCE_S = 2.0
_KINDS = ("pod", "job", "workload", "deployment", "replicaset", "statefulset", "daemonset", "gang")
Complete = Callable[[str], list[str]]
Names = Callable[[typer.Context, str], list[str]]


def one_of(words: Sequence[str]) -> Complete:
    def complete(incomplete: str) -> list[str]:
        return _begun(words, incomplete)

    return complete


def policies(incomplete: str) -> list[str]:
    from shoal.engine.profile import POLICIES

    return _begun(tuple(POLICIES), incomplete)


def policy_lists(incomplete: str) -> list[str]:
    """Names separated by commas: the last one is completed."""
    from shoal.sim.packing import POLICY_NAMES

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _begun((*POLICY_NAMES, "all"), last)]


def fleets(incomplete: str) -> list[str]:
    """Machine types for `--nodes 8xTYPE,...`; the last part is completed."""
    from shoal.embedded.machines.machine_types import machine_names

    before, comma, last = incomplete.rpartition(",")
    count, times, begun = last.rpartition("x") if last[:1].isdigit() else ("", "", last)
    return [f"{before}{comma}{count}{times}{name}" for name in _begun(tuple(machine_names()), begun)]


def namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    from shoal.client.kind import NAMESPACES

    return _begun(_asked(ctx, NAMESPACES), incomplete)


def contexts(ctx: typer.Context, incomplete: str) -> list[str]:
    """The contexts of the kubeconfig that the command would read."""
    from shoal.client.http.locate import context_names

    kubeconfig = ctx.params.get("kubeconfig")
    try:
        return _begun(context_names(Path(kubeconfig) if kubeconfig else None), incomplete)
    except Exception:  # noqa: BLE001 - an error text is no completion
        return []


def nodes(ctx: typer.Context, incomplete: str) -> list[str]:
    from shoal.client.kind import NODES

    return _begun(_asked(ctx, NODES), incomplete)


def listed_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Types, and behind a type the names of its objects."""
    given = ctx.params.get("what") or ()
    known = _known()
    for each in TYPE_NAMES:
        if given and given[0] in each.all:
            kind = known.get(each.singular)
            return [] if kind is None else _begun(_asked(ctx, kind), incomplete)
    return _begun([each.plural for each in TYPE_NAMES], incomplete)


def cluster_queues(ctx: typer.Context, incomplete: str) -> list[str]:
    from shoal.client.ecosystem_kinds import CLUSTER_QUEUES

    return _begun(_asked(ctx, CLUSTER_QUEUES), incomplete)


def subjects(ctx: typer.Context, incomplete: str) -> list[str]:
    """`pod/`, `job/` and so on; behind one of them, or where no other can be meant, the names. Behind `pod ` the names
    of pods."""
    if given := ctx.params.get("what"):
        known = _known().get(given[0])
        return [] if known is None else _begun(_asked(ctx, known), incomplete)
    word, slash, _ = incomplete.partition("/")
    kinds = [kind for kind in _KINDS if kind == word or (not slash and kind.startswith(word))]
    if len(kinds) != 1:
        return [f"{kind}/" for kind in kinds]
    kind = _known().get(kinds[0])
    names = [] if kind is None else [f"{kinds[0]}/{name}" for name in _asked(ctx, kind)]
    # Where nothing is known the kind alone is half of what was meant.
    return _begun(names or ([] if slash else [f"{kinds[0]}/"]), incomplete)


async def names_in(api: Api, kind: Kind, namespace: str) -> list[str]:
    """In their order; none where there is no answer in time."""
    import asyncio

    async with asyncio.timeout(_PATIENCE_S):
        found = await api.list(kind, namespace)
    return sorted({item.name for item in found.items})


def _asked(ctx: typer.Context, kind: Kind) -> list[str]:
    """Where the line says so far which cluster is meant; of files nothing is read."""
    import asyncio
    import random

    from shoal.cli.chosen_cluster import located
    from shoal.client.http.api import KubeApi
    from shoal.client.http.kubeconfig import KubeconfigChoice

    given = ctx.params
    if given.get("filename"):
        return []

    async def asked() -> list[str]:
        kubeconfig = given.get("kubeconfig")
        access = located(Path(kubeconfig) if kubeconfig else None, KubeconfigChoice(given.get("context") or ""))
        namespace = (given.get("namespace") or access.namespace) if kind.is_namespaced else ""
        api = KubeApi(access, random.Random())
        try:
            return await names_in(api, kind, namespace)
        finally:
            await api.close()

    try:
        return asyncio.run(asked())
    except Exception:  # noqa: BLE001 - an error text is no completion
        return []


def _known() -> dict[str, Kind]:
    from shoal.client import kind as kinds
    from shoal.client.ecosystem_kinds import LOCAL_QUEUES, VOLCANO_POD_GROUPS, WORKLOADS

    return {
        "pod": kinds.PODS,
        "job": kinds.JOBS,
        "workload": WORKLOADS,
        "deployment": kinds.DEPLOYMENTS,
        "replicaset": kinds.REPLICA_SETS,
        "statefulset": kinds.STATEFUL_SETS,
        "daemonset": kinds.DAEMON_SETS,
        "gang": VOLCANO_POD_GROUPS,
        "node": kinds.NODES,
        "queue": LOCAL_QUEUES,
    }


def _begun(words: Sequence[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]
