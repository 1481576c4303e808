"""Putting an admission on a job's pods, and giving the job back as its owner wrote it.

What the owner wrote is kept by the Workload: its pod sets are the job's templates as they were. Dressing always begins
with them, so that neither a start that is done twice nor a new flavor after an old one leaves anything behind.

Rejected: patches that undo patches. Nobody could tell, after a crash between two of them, which were done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from shoal.controllers.queued_work.fields import put, put_or_drop, string_map
from shoal.controllers.queued_work.kueue_names import COMPLETIONS_EQUAL_PARALLELISM
from shoal.controllers.queued_work.pod_set_info import OWN_ANNOTATIONS, OWN_LABELS, PodSetInfo, merge_lists, merge_maps
from shoal.store.queues.job_parts import Obj, PodPart, dig
from shoal.store.queues.job_parts.plain import LEAST_ANNOTATION
from shoal.store.queues.job_parts.ray import made_submitter

_PLACING = ("nodeSelector", "tolerations", "schedulingGates")
_META = ("labels", "annotations")
MANAGER = "kueue.x-k8s.io/manager"


class Dressing:
    """This one does nothing: for jobs whose templates cannot be changed any more."""

    def take_off(self, job: Obj, parts: Sequence[PodPart], pod_sets: Mapping[str, Obj], /) -> None:
        """Give `job` its templates back; `pod_sets` are the Workload's, by name."""

    def put_on(self, job: Obj, parts: Sequence[PodPart], infos: Mapping[str, PodSetInfo], /) -> None:
        """Onto a job that has its own templates."""


def is_undressed(dressing: Dressing, job: Obj, parts: Sequence[PodPart], pod_sets: Mapping[str, Obj]) -> bool:
    own = deepcopy(job)
    dressing.take_off(own, parts, pod_sets)
    return own == job


class InTemplates(Dressing):
    """Templates stand in the job."""

    def take_off(self, job: Obj, parts: Sequence[PodPart], pod_sets: Mapping[str, Obj], /) -> None:
        for part in parts:
            template, own = dig(job, part.at), pod_sets.get(part.name)
            if part.is_made or not isinstance(template, dict) or own is None:
                continue
            undress(template, own.get("template") or {})

    def put_on(self, job: Obj, parts: Sequence[PodPart], infos: Mapping[str, PodSetInfo], /) -> None:
        for part in parts:
            one = infos.get(part.name)
            if one is None:
                continue
            template = dig(job, part.at)
            if part.is_made:
                template = deepcopy(part.template)
                put(job, part.at, template)
            wear(template.setdefault("metadata", {}), template.setdefault("spec", {}), one)


def undress(template: Obj, written: Obj) -> None:
    """Give it back what its owner wrote, in the place of what an admission put on."""
    restore(template, "metadata", written, _META)
    restore(template, "spec", written, _PLACING)


def restore(template: Obj, where: str, written: Obj, keys: Sequence[str]) -> None:
    own, holder = written.get(where) or {}, template.get(where)
    if holder is None:
        if not own:
            return
        holder = template[where] = {}
    for key in keys:
        if _means_nothing(holder.get(key)) and _means_nothing(own.get(key)):
            continue
        put_or_drop(holder, key, deepcopy(own.get(key)))
    if not holder and where not in written:
        del template[where]


def _means_nothing(value: Any) -> bool:
    return not value


def wear(meta: Obj, spec: Obj, infos: PodSetInfo) -> None:
    """Raises PodSetConflictError where the pods say something else."""
    meta["annotations"] = merge_maps(string_map(meta, "annotations"), infos.annotations, "annotations", OWN_ANNOTATIONS)
    meta["labels"] = merge_maps(string_map(meta, "labels"), infos.labels, "labels", OWN_LABELS)
    selector = merge_maps(string_map(spec, "nodeSelector"), infos.node_selector, "nodeSelector")
    for key, value in (
        ("nodeSelector", selector),
        ("tolerations", merge_lists(spec.get("tolerations") or (), infos.tolerations)),
        ("schedulingGates", merge_lists(spec.get("schedulingGates") or (), infos.gates)),
    ):
        if value:
            spec[key] = value


class OfBatchJobs(InTemplates):
    """A batch Job that may start smaller is made smaller."""

    def take_off(self, job: Obj, parts: Sequence[PodPart], pod_sets: Mapping[str, Obj], /) -> None:
        super().take_off(job, parts, pod_sets)
        own = pod_sets.get("main")
        if own is not None:
            self._resize(job, int(own.get("count", 1)))

    def put_on(self, job: Obj, parts: Sequence[PodPart], infos: Mapping[str, PodSetInfo], /) -> None:
        super().put_on(job, parts, infos)
        one = infos.get("main")
        if one is not None:
            self._resize(job, one.count)

    def _resize(self, job: Obj, count: int) -> None:
        annotations, spec = string_map(job, "metadata", "annotations"), job["spec"]
        if LEAST_ANNOTATION not in annotations:
            return
        completions = spec.get("completions")
        present = spec.get("parallelism", 1)
        if count == (present if completions is None else min(present, completions)):
            return
        spec["parallelism"] = count
        if annotations.get(COMPLETIONS_EQUAL_PARALLELISM) == "true":
            spec["completions"] = count


class OfRayJobs(InTemplates):
    """Where nobody wrote how the submitter looks, the admission writes it, and takes all of it away again."""

    def take_off(self, job: Obj, parts: Sequence[PodPart], pod_sets: Mapping[str, Obj], /) -> None:
        super().take_off(job, parts, pod_sets)
        written = dig(job, ("spec", "submitterPodTemplate"))
        if written is not None and written == made_submitter(parts[0].template):
            del job["spec"]["submitterPodTemplate"]


class OfSpark(Dressing):
    """Beside cores and memory, each role has the fields of a pod. A node selector is for both roles or for each."""

    def take_off(self, job: Obj, parts: Sequence[PodPart], pod_sets: Mapping[str, Obj], /) -> None:
        for part in parts:
            role, own = dig(job, part.at), pod_sets.get(part.name)
            if not isinstance(role, dict) or own is None:
                continue
            written = own.get("template") or {}
            for key in _META:
                put_or_drop(role, key, dict(string_map(written, "metadata", key)))
            holder = job["spec"] if "nodeSelector" in job["spec"] else role
            put_or_drop(holder, "nodeSelector", dict(string_map(written, "spec", "nodeSelector")))
            put_or_drop(role, "tolerations", deepcopy(dig(written, ("spec", "tolerations"))))

    def put_on(self, job: Obj, parts: Sequence[PodPart], infos: Mapping[str, PodSetInfo], /) -> None:
        for part in parts:
            one = infos.get(part.name)
            if one is None:
                continue
            role = dig(job, part.at)
            spec = {**role, "nodeSelector": string_map(job, "spec", "nodeSelector") or string_map(role, "nodeSelector")}
            # Labels and annotations stand beside what would be a pod's spec.
            wear(role, spec, one)
            put_or_drop(role, "tolerations", spec.get("tolerations"))
            holder = job["spec"] if "nodeSelector" in job["spec"] else role
            put_or_drop(holder, "nodeSelector", spec["nodeSelector"])


class OfAppWrappers(Dressing):
    """Beside each wrapped object stands what goes onto its pods."""

    def take_off(self, job: Obj, _parts: Sequence[PodPart], _pod_sets: Mapping[str, Obj], /) -> None:
        for component in dig(job, ("spec", "components")) or ():
            component.pop("podSetInfos", None)

    def put_on(self, job: Obj, parts: Sequence[PodPart], infos: Mapping[str, PodSetInfo], /) -> None:
        for part in parts:
            one = infos.get(part.name)
            if one is None:
                continue
            component = dig(job, part.at[:3])
            info = {
                "annotations": one.annotations,
                "labels": one.labels,
                "nodeSelector": one.node_selector,
                "tolerations": one.tolerations,
            }
            component.setdefault("podSetInfos", []).append({key: value for key, value in info.items() if value})


class OfTrainJobs(Dressing):
    """The templates are the runtime's: the job carries patches of it, by who wrote them."""

    def take_off(self, job: Obj, _parts: Sequence[PodPart], _pod_sets: Mapping[str, Obj], /) -> None:
        patches = dig(job, ("spec", "runtimePatches"))
        if patches is None:
            return
        others = [one for one in patches if one.get("manager") != MANAGER]
        if len(others) != len(patches):
            put_or_drop(job["spec"], "runtimePatches", others)

    def put_on(self, job: Obj, parts: Sequence[PodPart], infos: Mapping[str, PodSetInfo], /) -> None:
        jobs = []
        for part in parts:
            one = infos.get(part.name)
            if one is None:
                continue
            merge_maps(string_map(part.template, "spec", "nodeSelector"), one.node_selector, "nodeSelector")
            spec: Obj = {}
            put_or_drop(spec, "nodeSelector", one.node_selector)
            put_or_drop(spec, "tolerations", one.tolerations)
            template = {"metadata": {"labels": one.labels, "annotations": one.annotations}, "spec": spec}
            jobs.append({"name": part.name, "template": {"spec": {"template": template}}})
        patch = {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
        job["spec"].setdefault("runtimePatches", []).append(patch)


IN_TEMPLATES: Dressing = InTemplates()
