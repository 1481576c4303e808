"""Executes the subresources that are not plain reads and writes: binding and finalize."""

from __future__ import annotations

import msgspec

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.calls import AdmissionAttributes, Call
from shoal.embedded.apiserver.kinds.pods.binding import bind as bind_pod
from shoal.embedded.apiserver.kinds.pods.binding import check_binding
from shoal.embedded.apiserver.resource import Home, Obj
from shoal.embedded.apiserver.rest.changing import change
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.rest.quota_status import commit_charged
from shoal.embedded.apiserver.state.record import Record, Write

PODS = Home("", "pods")


async def bind(context: ServerContext, call: Call, binding: Obj) -> Obj:
    """Place a pod on a node; the binding's labels and annotations come with it, in one write."""
    pods = context.catalog.builtin(PODS)
    name = call.name or binding.get("metadata", {}).get("name", "")
    ref = pods.ref(call.namespace, name)
    admission = AdmissionAttributes("CREATE", call, name, binding, None)
    if context.dynamic.concerns(call, admission.operation):
        await context.dynamic.mutate(admission)
        await context.dynamic.validate(admission)
        binding = admission.written
    check_binding(binding, name)
    async with context.state.lock(ref):
        record = context.state.get(ref)
        if record is None:
            raise status.not_found("pods", "", name)
        pod = msgspec.json.decode(record.data)
        bind_pod(pod, binding, context.clock.text())
        on_pod = msgspec.structs.replace(call, resource=pods, name=name)
        charged = AdmissionAttributes("UPDATE", on_pod, name, pod, record.obj())
        if call.dry_run:
            context.quotas.charges(charged)
        else:
            labels = pod["metadata"].get("labels") or {}
            write = Write(ref, pod, record, record.uid, labels, pods.strategy.fields(pod))
            await commit_charged(context, charged, [write])
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


# -- namespaces ------------------------------------------------------------------------------------------------------


async def finalize(context: ServerContext, call: Call, wanted: Obj) -> Obj | Record:
    """Take finalizers from a namespace's spec; with the last one it goes."""

    async def make(present: Obj) -> Obj:
        version = wanted["metadata"].get("resourceVersion")
        if version:
            present["metadata"]["resourceVersion"] = version
        present["spec"] = wanted.get("spec") or {}
        return present

    return await change(context, call, make)
