"""What is known and written for jobs: their pods and groups from caches, each write safe to be done again.

Names of everything that is made for a job follow from the job, so that a lost answer or a death makes nothing twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from shoal.api.wire import to_json
from shoal.controllers.owned_pods.making import in_growing_groups, is_namespace_ending
from shoal.controllers.volcano.groups import all_of
from shoal.controllers.volcano.job import JobStatus, VolcanoJob
from shoal.controllers.volcano.job_group import GROUP_FIELDS, group_of_job
from shoal.controllers.volcano.job_pods import JobPod, claim_name, pod_of_job
from shoal.controllers.volcano.names import BATCH, JOB_NAME, MANAGER, OUT_OF_SYNC, reference
from shoal.controllers.volcano.plugins.network import objects_svc
from shoal.controllers.volcano.plugins.table import PLUGINS, plugins_of
from shoal.controllers.volcano.sights import PodGroup, group_of
from shoal.store.live.context import Context
from shoal.store.live.ecosystem_kinds import VOLCANO_JOBS, VOLCANO_POD_GROUPS
from shoal.store.live.item import Item, Obj
from shoal.store.live.kind import CONFIG_MAPS, PODS, PRIORITY_CLASSES, VOLUME_CLAIMS, Kind
from shoal.store.live.port import Deletion, Patch
from shoal.store.live.refusals import AlreadyExistsError, NotFoundError, StaleError
from shoal.units.errors import ShoalError

_JOB_NAME = JOB_NAME.encode()


class _PriorityClass(msgspec.Struct):
    value: int = 0


class JobOffice:
    def __init__(self, context: Context) -> None:
        self.context = context
        self._api = context.api
        self._events = context.events.named(MANAGER)
        self._pods = context.informers.of(PODS).index("volcano job", _job_uids)
        self._groups = context.informers.of(VOLCANO_POD_GROUPS)
        self._jobs = context.informers.of(VOLCANO_JOBS)
        self._classes = context.informers.of(PRIORITY_CLASSES)
        self._told: dict[str, dict[str, str]] = {}
        """What was last told of a job, by reason: what has not changed is not told again."""
        self.lost: dict[str, list[JobPod]] = {}
        """Pods that vanished since their job was last looked at."""
        self._shapes: dict[str, object] = {}
        """The sizes of a job's tasks for which what its plugins made was last written."""

    def forget(self, uid: str) -> None:
        self._told.pop(uid, None)
        self.lost.pop(uid, None)
        self._shapes.pop(uid, None)

    # -- what is known ----------------------------------------------------------------------------------------------

    def pods(self, job: VolcanoJob) -> list[JobPod]:
        found = (pod_of_job(item) for item in self._pods[job.metadata.uid])
        return [pod for pod in found if pod is not None]

    def group(self, job: VolcanoJob) -> PodGroup | None:
        item = self._groups.get(job.metadata.namespace, job.group_name)
        return group_of(item) if item is not None else None

    def priorities(self) -> dict[str, int]:
        return {item.name: item.read(_PriorityClass).value for item in self._classes}

    def lose(self, item: Item) -> None:
        """A pod is gone; whose it was, if it was that of a job that is there. What dies after its job is asked about
        by nobody."""
        pod = pod_of_job(item) if _job_uids(item) else None
        owner = pod.metadata.controller() if pod is not None else None
        job = self._jobs.get(item.namespace, owner.name) if owner is not None else None
        if pod is not None and owner is not None and job is not None and job.uid == owner.uid:
            self.lost.setdefault(owner.uid, []).append(pod)

    # -- telling ----------------------------------------------------------------------------------------------------

    def say(self, job: VolcanoJob, reason: str, words: str) -> None:
        self._events.record(reference(VOLCANO_JOBS, job.key, job.metadata.uid), reason, words)

    def warn(self, job: VolcanoJob, reason: str, words: str) -> None:
        """Only where it is new."""
        told = self._told.setdefault(job.metadata.uid, {})
        if told.get(reason) != words:
            told[reason] = words
            about = reference(VOLCANO_JOBS, job.key, job.metadata.uid)
            self._events.record(about, reason, words, type_="Warning")

    # -- writing ----------------------------------------------------------------------------------------------------

    async def write(self, item: Item, status: JobStatus) -> None:
        obj = item.obj()
        obj |= {"apiVersion": VOLCANO_JOBS.api_version, "kind": VOLCANO_JOBS.name}
        obj["status"] = msgspec.json.decode(to_json(status))
        await self._api.update(VOLCANO_JOBS, obj, "status")

    async def keep_group(self, job: VolcanoJob, spec: Obj) -> PodGroup | None:
        """The group as it is by now; only what differs from `spec` is written."""
        item = self._groups.get(job.metadata.namespace, job.group_name)
        if item is None:
            try:
                return group_of(await self._api.create(VOLCANO_POD_GROUPS, group_of_job(job, spec)))
            except AlreadyExistsError:
                raise StaleError(f"the group {job.group_name} is there and not known yet") from None
        present = item.obj().get("spec") or {}
        if all(present.get(name) == spec.get(name) for name in GROUP_FIELDS):
            return group_of(item)
        changes = {name: _replacing(present.get(name), spec.get(name)) for name in GROUP_FIELDS}
        body = {"metadata": {"uid": item.uid}, "spec": changes}
        return group_of(await self._api.patch(VOLCANO_POD_GROUPS, *item.key, Patch("merge", body)))

    async def drop_group(self, job: VolcanoJob) -> None:
        item = self._groups.get(job.metadata.namespace, job.group_name)
        if item is None:
            return
        try:
            await self._api.delete(VOLCANO_POD_GROUPS, *item.key, Deletion(uid=item.uid))
        except NotFoundError:
            return

    async def create(self, job: VolcanoJob, pods: Sequence[Obj]) -> None:
        _, failure = await in_growing_groups(pods, self._create)
        if failure is None or is_namespace_ending(failure):
            return
        if not isinstance(failure, StaleError):
            self.warn(job, "FailedCreate", f"Error creating pods: {failure}")
        raise failure

    async def _create(self, pod: Obj) -> None:
        try:
            await self._api.create(PODS, pod)
        except AlreadyExistsError:
            raise StaleError(f"the pod {pod['metadata']['name']} is there already") from None

    async def give_up(self, pods: Sequence[JobPod]) -> None:
        """Mark pods as ended by their job: their end is no event."""
        await all_of([partial(self._mark, pod) for pod in pods if not pod.is_given_up])

    async def delete(self, job: VolcanoJob, pods: Sequence[JobPod]) -> None:
        try:
            await all_of([partial(self._delete, pod) for pod in pods if not pod.is_leaving])
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

    # -- what belongs to a job beside its pods ----------------------------------------------------------------------

    async def furnish(self, job: VolcanoJob) -> dict[str, str]:
        """Claims and the objects of plugins, made where the status does not say that they are; what it says then."""
        known = dict(job.status.controlled_resources)
        for at, volume in enumerate(job.spec.volumes):
            name = claim_name(job, at)
            if f"volume-pvc-{name}" not in known and volume.get("volumeClaim"):
                await self._make(job, VOLUME_CLAIMS, {"metadata": {"name": name}, "spec": dict(volume["volumeClaim"])})
            known[f"volume-pvc-{name}"] = name
        plugins = plugins_of(job)
        for name, given in plugins.items():
            make = PLUGINS[name].objects
            if make is not None and f"plugin-{name}" not in known:
                for kind, obj in make(job, given):
                    await self._make(job, kind, obj)
            known[f"plugin-{name}"] = name
        await self._follow_size(job, is_new="plugin-svc" not in job.status.controlled_resources)
        return known

    async def _follow_size(self, job: VolcanoJob, *, is_new: bool) -> None:
        """The list of hosts, when the job was made larger or smaller."""
        given = plugins_of(job).get("svc")
        shape = tuple((task.name, task.replicas) for task in job.tasks())
        if given is None or self._shapes.get(job.metadata.uid) == shape:
            return
        if not is_new:
            for kind, obj in objects_svc(job, given):
                if kind == CONFIG_MAPS:
                    key = job.metadata.namespace, obj["metadata"]["name"]
                    await self._api.patch(kind, *key, Patch("merge", {"data": obj["data"]}))
        self._shapes[job.metadata.uid] = shape

    async def _make(self, job: VolcanoJob, kind: Kind, obj: Obj) -> None:
        obj["metadata"] |= {"namespace": job.metadata.namespace, "ownerReferences": [job.owner_reference()]}
        try:
            await self._api.create(kind, obj)
        except AlreadyExistsError:
            # A predecessor made it.
            return


def _replacing(before: object, after: object) -> object:
    """A map in place of another: a merge patch keeps what it does not name."""
    if isinstance(before, dict) and isinstance(after, dict):
        return {**dict.fromkeys(before.keys() - after.keys()), **after}
    return after


def _job_uids(item: Item) -> tuple[str, ...]:
    pod = pod_of_job(item) if _JOB_NAME in item.data else None
    owner = pod.metadata.controller() if pod is not None else None
    is_ours = owner is not None and owner.api_version.startswith(f"{BATCH}/") and owner.kind == VOLCANO_JOBS.name
    return (owner.uid,) if owner is not None and is_ours else ()
