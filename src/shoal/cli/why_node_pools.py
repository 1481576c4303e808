"""Adds to an explanation which node pool would provide a node for the pods that wait, or why none can.

The answer is that of `shoal scale plan` for these pods alone, with the other pods of their gangs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from shoal.autoscale.node_claims.claim import NodeClaim, claim_of
from shoal.autoscale.nodes.before_provisioning import NOT_PROVISIONING
from shoal.autoscale.nodes.plan import NodePlan
from shoal.autoscale.nodes.planner import plan_nodes
from shoal.autoscale.nodes.planning_input import pod_key
from shoal.cli.explanation_text import insert
from shoal.cli.freed_capacity_text import freeing_lines
from shoal.cli.live_history import Family
from shoal.cli.manifests import Loaded
from shoal.cli.object_source import Source
from shoal.cli.scale_documents import held_texts, scaling_options, waiting_pods
from shoal.store.freed_capacity import freed_capacity
from shoal.store.inventory import Inventory
from shoal.store.node_planning import undecided_scaling
from shoal.store.node_scaling import has_pools
from shoal.views.explanation import Explanation
from shoal.views.scale_plan import passed_over_text
from shoal.views.starting_nodes import is_starting, starting_lines

HEADING = "node pools"


def tell_node_pools(explanation: Explanation, source: Source, loaded: Loaded, family: Family) -> None:
    """`loaded`: after all rounds, so that what is pending in it stays pending."""
    gang = loaded.cluster.gangs.find(family.key)
    pods = (*family.pods, *(gang.waiting if gang is not None else ()))
    pending = [key for key in pods if key in loaded.cluster.pending]
    if not pending or not has_pools(Inventory(source.documents)):
        return
    options = scaling_options(source, loaded, None, spot_to_spot=False, removes=False, ignores_preferences=False)
    waiting = waiting_pods(source.documents, loaded)
    inventory = Inventory(source.documents)
    scaling, given = undecided_scaling(inventory, loaded.cluster, waiting, held_texts(loaded), options)
    freed = freed_capacity(loaded.cluster, given, options.freeing, options.now)
    given = freed.added_to(given)
    gangs = {given.gangs[key] for key in pending if key in given.gangs}
    chosen = {key for pod in given.pods if (key := pod_key(pod)) in pending or given.gangs.get(key) in gangs}
    plan = plan_nodes(replace(given, pods=tuple(pod for pod in given.pods if pod_key(pod) in chosen)))
    claims = [claim_of(raw) for raw in (*scaling.objects.claims.values(), *scaling.objects.unregistered)]
    lines = _lines(plan, chosen, claims, options.now.timestamp())
    insert(explanation, HEADING, *lines, *freeing_lines(freed, chosen))


def _lines(plan: NodePlan, pods: Iterable[str], claims: Iterable[NodeClaim], now_s: float) -> list[str]:
    wanted, taking = set(pods), set(plan.placed.values())
    starting = [
        claim
        for claim in claims
        if is_starting(claim) and (not wanted.isdisjoint(claim.pods) or not taking.isdisjoint((claim.name, claim.node)))
    ]
    told = {name for claim in starting for name in (claim.name, claim.node)}
    lines = starting_lines(starting, now_s)
    alike = Counter((node.pool, node.launch.name, node.offering.capacity_type, node.price) for node in plan.new_nodes)
    for (pool, kind, capacity_type, price), count in sorted(alike.items()):
        lines.append(f"pool {pool} would provide {count:,} x {kind} ({capacity_type}), ${price * count:,.2f} per hour")
    lines += [f"not chosen: {words}" for words in sorted({passed_over_text(node) for node in plan.new_nodes} - {""})]
    lines += [f"node {node}, which is starting, would take it" for node in sorted(taking - told)]
    refused = [each for each in plan.pending if each.pod in wanted]
    if refused and not plan.new_nodes:
        first = next((each for each in refused if each.by_pool), refused[0])
        if first.by_pool:
            lines += [f"pool {pool}: {why}" for pool, why in sorted(first.by_pool.items())]
        else:
            is_held = first.reason.startswith(NOT_PROVISIONING)
            lines.append(first.reason if is_held else f"none provides a node: {first.reason}")
    return lines
