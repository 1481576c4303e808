"""What of the work in a storm is not yet as it has to be in the end: everything has run, and nothing remains."""

from __future__ import annotations

from collections.abc import Iterator

from build.small_clusters import SmallCluster
from build.storm_laws import is_so
from shoal.client.ecosystem_kinds import WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import JOBS, PODS

_OVER = ("Succeeded", "Failed")


async def lacks(cluster: SmallCluster, wanted: set[str]) -> list[str]:
    """`wanted`: jobs that must be there, and complete."""
    objects = {kind: await cluster.all(kind) for kind in (JOBS, PODS, WORKLOADS)}
    names = {one["metadata"]["name"] for one in objects[JOBS]}
    found = [f"job {name} is lost" for name in sorted(wanted - names)]
    for job in objects[JOBS]:
        found += _lack_of_job(job)
    for pod in objects[PODS]:
        found += _lack_of_pod(pod)
    for workload in objects[WORKLOADS]:
        if not is_so(workload, "Finished"):
            said = (workload.get("status") or {}).get("conditions")
            found.append(f"Workload {workload['metadata']['name']} is not finished: {said}")
    uids = {one["metadata"]["uid"] for one in (*objects[JOBS], *objects[PODS])}
    for kind, each in objects.items():
        for one in each:
            found += [f"{kind.name} {words}" for words in _remains(one["metadata"], uids)]
    return found


def _lack_of_job(job: Obj) -> Iterator[str]:
    if not is_so(job, "Complete"):
        yield f"job {job['metadata']['name']}: {job.get('status')}, suspend {job['spec'].get('suspend')}"


def _lack_of_pod(pod: Obj) -> Iterator[str]:
    name, phase = pod["metadata"]["name"], pod["status"].get("phase")
    if phase not in _OVER:
        yield f"pod {name}: {phase} on {pod['spec'].get('nodeName')}"
    if pod["spec"].get("schedulingGates"):
        yield f"pod {name} is gated"


def _remains(meta: Obj, uids: set[str]) -> Iterator[str]:
    owners = {owner["uid"] for owner in meta.get("ownerReferences") or ()}
    if owners and not uids & owners:
        yield f"{meta['name']} has lost its owner"
    if "deletionTimestamp" in meta:
        yield f"{meta['name']} is ending: {meta.get('finalizers')}"
