"""Reads and writes what belongs to jobs: their pods and pod groups from the caches, and every write to the API server.

Each write can safely be repeated: the names of all objects of a job follow from the job, so that a lost response or a
restart creates no object twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from shoal.api.wire import to_json
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import VOLCANO_JOBS, VOLCANO_POD_GROUPS
from shoal.client.item import Item, Obj
from shoal.client.kind import CONFIG_MAPS, PODS, PRIORITY_CLASSES, VOLUME_CLAIMS, Kind
from shoal.client.owned_pods.pod_control import is_namespace_ending, slow_start_batch
from shoal.client.port import Deletion, Patch
from shoal.client.refusals import AlreadyExistsError, NotFoundError, StaleError
from shoal.controllers.volcano.job import VolcanoJob, VolcanoJobStatus
from shoal.controllers.volcano.job_pod_group import GROUP_FIELDS, group_of_job
from shoal.controllers.volcano.job_pods import JobPod, claim_name, pod_of_job
from shoal.controllers.volcano.names import BATCH, JOB_NAME, MANAGER, OUT_OF_SYNC, reference
from shoal.controllers.volcano.plugins.network import objects_svc
from shoal.controllers.volcano.plugins.table import PLUGINS, plugins_of
from shoal.controllers.volcano.status_controller import all_of
from shoal.controllers.volcano.views import group_of
from shoal.engine.queues.disciplines.volcano.objects import QueuedPodGroup
from shoal.units.errors import ShoalError

_JOB_NAME = JOB_NAME.encode()


class _PriorityClass(msgspec.Struct):
    value: int = 0


class JobContext:
    def __init__(self, context: Context) -> None:
        self.runtime = context
        self._api = context.api
        self._events = context.events.named(MANAGER)
        self._pods = context.informers.of(PODS).index("volcano job", _job_uids)
        self._groups = context.informers.of(VOLCANO_POD_GROUPS)
        self._jobs = context.informers.of(VOLCANO_JOBS)
        self._classes = context.informers.of(PRIORITY_CLASSES)
        self._warned: dict[str, dict[str, str]] = {}
        """The last warning of each job by reason; a warning that has not changed is not recorded again."""
        self.lost: dict[str, list[JobPod]] = {}
        """Pods that were deleted since the last sync of their job."""
        self._written_sizes: dict[str, object] = {}
        """The task sizes for which the objects of the plugins were last written, by job."""

    def forget(self, uid: str) -> None:
        self._warned.pop(uid, None)
        self.lost.pop(uid, None)
        self._written_sizes.pop(uid, None)

    # -- reads ------------------------------------------------------------------------------------------------------

    def pods(self, job: VolcanoJob) -> list[JobPod]:
        found = (pod_of_job(item) for item in self._pods[job.metadata.uid])
        return [pod for pod in found if pod is not None]

    def group(self, job: VolcanoJob) -> QueuedPodGroup | None:
        item = self._groups.get(job.metadata.namespace, job.group_name)
        return group_of(item) if item is not None else None

    def priorities(self) -> dict[str, int]:
        return {item.name: item.read(_PriorityClass).value for item in self._classes}

    def record_lost(self, item: Item) -> None:
        """Notes a deleted pod for the next sync of its job, if that job still exists."""
        pod = pod_of_job(item) if _job_uids(item) else None
        owner = pod.metadata.controller() if pod is not None else None
        job = self._jobs.get(item.namespace, owner.name) if owner is not None else None
        if pod is not None and owner is not None and job is not None and job.uid == owner.uid:
            self.lost.setdefault(owner.uid, []).append(pod)

    # -- events -----------------------------------------------------------------------------------------------------

    def record(self, job: VolcanoJob, reason: str, words: str) -> None:
        self._events.record(reference(VOLCANO_JOBS, job.key, job.metadata.uid), reason, words)

    def warn(self, job: VolcanoJob, reason: str, words: str) -> None:
        """Records a warning unless the last one with this reason was the same."""
        warned = self._warned.setdefault(job.metadata.uid, {})
        if warned.get(reason) != words:
            warned[reason] = words
            about = reference(VOLCANO_JOBS, job.key, job.metadata.uid)
            self._events.record(about, reason, words, type_="Warning")

    # -- writes -----------------------------------------------------------------------------------------------------

    async def write(self, item: Item, status: VolcanoJobStatus) -> None:
        obj = item.obj()
        obj |= {"apiVersion": VOLCANO_JOBS.api_version, "kind": VOLCANO_JOBS.name}
        obj["status"] = msgspec.json.decode(to_json(status))
        await self._api.update(VOLCANO_JOBS, obj, "status")

    async def sync_group(self, job: VolcanoJob, spec: Obj) -> QueuedPodGroup | None:
        """Returns the current group; only fields that differ from `spec` are written."""
        item = self._groups.get(job.metadata.namespace, job.group_name)
        if item is None:
            try:
                return group_of(await self._api.create(VOLCANO_POD_GROUPS, group_of_job(job, spec)))
            except AlreadyExistsError:
                raise StaleError(f"PodGroup {job.group_name!r} already exists and is not in the cache yet") from None
        present = item.obj().get("spec") or {}
        if all(present.get(name) == spec.get(name) for name in GROUP_FIELDS):
            return group_of(item)
        changes = {name: _replacing(present.get(name), spec.get(name)) for name in GROUP_FIELDS}
        body = {"metadata": {"uid": item.uid}, "spec": changes}
        return group_of(await self._api.patch(VOLCANO_POD_GROUPS, *item.key, Patch("merge", body)))

    async def delete_group(self, job: VolcanoJob) -> None:
        item = self._groups.get(job.metadata.namespace, job.group_name)
        if item is None:
            return
        try:
            await self._api.delete(VOLCANO_POD_GROUPS, *item.key, Deletion(uid=item.uid))
        except NotFoundError:
            return

    async def create(self, job: VolcanoJob, pods: Sequence[Obj]) -> None:
        _, failure = await slow_start_batch(pods, self._create)
        if failure is None or is_namespace_ending(failure):
            return
        if not isinstance(failure, StaleError):
            self.warn(job, "FailedCreate", f"Error creating pods: {failure}")
        raise failure

    async def _create(self, pod: Obj) -> None:
        try:
            await self._api.create(PODS, pod)
        except AlreadyExistsError:
            raise StaleError(f"Pod {pod['metadata']['name']!r} already exists") from None

    async def mark_out_of_sync(self, pods: Sequence[JobPod]) -> None:
        """Marks pods that their own job deletes: their deletion is not a job event."""
        await all_of([partial(self._mark, pod) for pod in pods if not pod.is_out_of_sync])

    async def delete(self, job: VolcanoJob, pods: Sequence[JobPod]) -> None:
        try:
            await all_of([partial(self._delete, pod) for pod in pods if not pod.is_terminating])
        except StaleError:
            raise
        except ShoalError as error:
            self.warn(job, "FailedDelete", f"Error deleting pods: {error}")
            raise

    async def _mark(self, pod: JobPod) -> None:
        body = {"metadata": {"uid": pod.metadata.uid, "annotations": {OUT_OF_SYNC: "true"}}}
        await self._api.patch(PODS, *pod.metadata.key, Patch("merge", body))

    async def _delete(self, pod: JobPod) -> None:
        await self._api.delete(PODS, *pod.metadata.key, Deletion(uid=pod.metadata.uid))

    # -- volume claims and the objects of plugins -------------------------------------------------------------------

    async def create_objects(self, job: VolcanoJob) -> dict[str, str]:
        """Creates the claims and plugin objects that the status does not list; returns the new list."""
        known = dict(job.status.controlled_resources)
        for at, volume in enumerate(job.spec.volumes):
            name = claim_name(job, at)
            if f"volume-pvc-{name}" not in known and volume.get("volumeClaim"):
                await self._create_object(
                    job, VOLUME_CLAIMS, {"metadata": {"name": name}, "spec": dict(volume["volumeClaim"])}
                )
            known[f"volume-pvc-{name}"] = name
        plugins = plugins_of(job)
        for name, arguments in plugins.items():
            make = PLUGINS[name].objects
            if make is not None and f"plugin-{name}" not in known:
                for kind, obj in make(job, arguments):
                    await self._create_object(job, kind, obj)
            known[f"plugin-{name}"] = name
        await self._update_hosts(job, is_new="plugin-svc" not in job.status.controlled_resources)
        return known

    async def _update_hosts(self, job: VolcanoJob, *, is_new: bool) -> None:
        """Rewrites the list of hosts after the job was scaled."""
        arguments = plugins_of(job).get("svc")
        sizes = tuple((task.name, task.replicas) for task in job.tasks())
        if arguments is None or self._written_sizes.get(job.metadata.uid) == sizes:
            return
        if not is_new:
            for kind, obj in objects_svc(job, arguments):
                if kind == CONFIG_MAPS:
                    key = job.metadata.namespace, obj["metadata"]["name"]
                    await self._api.patch(kind, *key, Patch("merge", {"data": obj["data"]}))
        self._written_sizes[job.metadata.uid] = sizes

    async def _create_object(self, job: VolcanoJob, kind: Kind, obj: Obj) -> None:
        obj["metadata"] |= {"namespace": job.metadata.namespace, "ownerReferences": [job.owner_reference()]}
        try:
            await self._api.create(kind, obj)
        except AlreadyExistsError:
            # An earlier process created it.
            return


def _replacing(before: object, after: object) -> object:
    """The value that replaces a map in a merge patch, which keeps every key that it does not name."""
    if isinstance(before, dict) and isinstance(after, dict):
        return {**dict.fromkeys(before.keys() - after.keys()), **after}
    return after


def _job_uids(item: Item) -> tuple[str, ...]:
    pod = pod_of_job(item) if _JOB_NAME in item.data else None
    owner = pod.metadata.controller() if pod is not None else None
    is_ours = owner is not None and owner.api_version.startswith(f"{BATCH}/") and owner.kind == VOLCANO_JOBS.name
    return (owner.uid,) if owner is not None and is_ours else ()
