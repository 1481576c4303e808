"""Evict a pod: ask the disruption budgets, charge the one that guards it, say on the pod why it ends, and delete it.

The pod's lock is held from the judgement to the deletion, so that what goes is what was judged: a pod that becomes
ready meanwhile is judged as a ready one, before or not at all. The budget is charged and the pod marked in one commit;
the deletion is the next one, because watchers are to see a pod that says why it ends before they see it end.

Rejected: a deletion on condition that the pod is still the version that was judged, as Kubernetes does it, which holds
no locks. A writer that gets a conflict there has already marked the pod and charged its budget.
"""

from __future__ import annotations

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.calls import AdmissionAttributes, Call
from shoal.embedded.apiserver.kinds.pods.eviction import evict as evict_pod
from shoal.embedded.apiserver.kinds.pods.eviction import mark_evicted
from shoal.embedded.apiserver.resource import Home, Obj, Ref
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.rest.deleting import check_preconditions, delete_options, let_go
from shoal.embedded.apiserver.state.record import Record, Write

_PODS = Home("", "pods")
_BUDGETS = Home("policy", "poddisruptionbudgets")


async def evict(context: ServerContext, call: Call, eviction: Obj) -> Obj:
    """The answer to an eviction that is done. Raises 429 for one that a budget forbids."""
    eviction = await _admitted(context, call, eviction)
    options = delete_options(eviction.get("deleteOptions"))
    call.dry_run = call.dry_run or bool(options.dry_run)
    pods = context.catalog.builtin(_PODS)
    deletion = msgspec.structs.replace(call, verb="delete", resource=pods, subresource="")
    ref = pods.ref(call.namespace, call.name)
    async with context.state.lock(ref):
        record = context.state.get(ref)
        if record is None:
            raise status.not_found(_PODS.plural, _PODS.group, call.name)
        check_preconditions(deletion, record.obj(), options.preconditions)
        record = await _marked(context, call, record)
        await let_go(context, deletion, record, record.obj(), options)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def _admitted(context: ServerContext, call: Call, eviction: Obj) -> Obj:
    if (eviction["metadata"].get("name") or call.name) != call.name:
        raise status.bad_request("name in URL does not match name in Eviction object")
    call.dry_run = call.dry_run or bool((eviction.get("deleteOptions") or {}).get("dryRun"))
    if not context.dynamic.concerns(call, "CREATE"):
        return eviction
    admission = AdmissionAttributes("CREATE", call, call.name, eviction, None)
    await context.dynamic.mutate(admission)
    await context.dynamic.validate(admission)
    return admission.written


async def _marked(context: ServerContext, call: Call, record: Record) -> Record:
    """The pod as it says why it ends, its budget charged; of a dry run the pod as it is."""
    while True:
        pod, now = record.obj(), context.clock.text()
        charged = evict_pod(pod, context.state.reader.all(*_BUDGETS, call.namespace), now)
        if call.dry_run:
            return record
        mark_evicted(pod, now)
        fields = context.catalog.builtin(_PODS).strategy.fields(pod)
        mark = Write(record.ref, pod, record, record.uid, record.labels, fields)
        if charged is None:
            return (await context.state.commit([mark]))[0]
        metadata = charged["metadata"]
        async with context.state.lock(Ref(_BUDGETS, metadata["namespace"], metadata["name"])):
            charge = _charge(context, charged)
            if charge is not None:
                return (await context.state.commit([mark, charge]))[0]


def _charge(context: ServerContext, budget: Obj) -> Write | None:
    """None when the budget is no longer as it was when it let the pod go."""
    metadata = budget["metadata"]
    ref = Ref(_BUDGETS, metadata["namespace"], metadata["name"])
    record = context.state.get(ref)
    if record is None or str(record.revision) != metadata["resourceVersion"]:
        return None
    return Write(ref, budget, record, record.uid, record.labels, record.fields)
