"""Injects an admission into the pod templates of a job, and restores the templates as the owner wrote them.

The Workload keeps the original templates: its pod sets are copies of them. An injection always starts from the
originals, so that neither a repeated start nor a new flavor leaves fields of an earlier one behind.

Rejected: patches that undo earlier patches. After a crash between two of them it is unknown which were carried out.
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

_SPEC_FIELDS = ("nodeSelector", "tolerations", "schedulingGates")
_META_FIELDS = ("labels", "annotations")
MANAGER = "kueue.x-k8s.io/manager"


class PodSetInjector:
    """Injects into the jobs of one kind. The base class does nothing: for jobs whose templates cannot be changed."""

    def restore(self, job: Obj, parts: Sequence[PodPart], pod_sets: Mapping[str, Obj], /) -> None:
        """Restore the original templates in `job`; `pod_sets` are the Workload's, by name."""

    def inject(self, job: Obj, parts: Sequence[PodPart], infos: Mapping[str, PodSetInfo], /) -> None:
        """Inject into a job with its original templates."""


def is_restored(injector: PodSetInjector, job: Obj, parts: Sequence[PodPart], pod_sets: Mapping[str, Obj]) -> bool:
    restored = deepcopy(job)
    injector.restore(restored, parts, pod_sets)
    return restored == job


class TemplateInjector(PodSetInjector):
    """For jobs that contain their pod templates."""

    def restore(self, job: Obj, parts: Sequence[PodPart], pod_sets: Mapping[str, Obj], /) -> None:
        for part in parts:
            template, pod_set = dig(job, part.at), pod_sets.get(part.name)
            if part.is_made or not isinstance(template, dict) or pod_set is None:
                continue
            restore_template(template, pod_set.get("template") or {})

    def inject(self, job: Obj, parts: Sequence[PodPart], infos: Mapping[str, PodSetInfo], /) -> None:
        for part in parts:
            one = infos.get(part.name)
            if one is None:
                continue
            template = dig(job, part.at)
            if part.is_made:
                template = deepcopy(part.template)
                put(job, part.at, template)
            merge_pod_set_info(template.setdefault("metadata", {}), template.setdefault("spec", {}), one)


def restore_template(template: Obj, original_template: Obj) -> None:
    """Replace the fields that an admission changes by those of the original template."""
    _restore_fields(template, "metadata", original_template, _META_FIELDS)
    _restore_fields(template, "spec", original_template, _SPEC_FIELDS)


def _restore_fields(template: Obj, where: str, original_template: Obj, keys: Sequence[str]) -> None:
    original, holder = original_template.get(where) or {}, template.get(where)
    if holder is None:
        if not original:
            return
        holder = template[where] = {}
    for key in keys:
        if _is_empty(holder.get(key)) and _is_empty(original.get(key)):
            continue
        put_or_drop(holder, key, deepcopy(original.get(key)))
    if not holder and where not in original_template:
        del template[where]


def _is_empty(value: Any) -> bool:
    return not value


def merge_pod_set_info(meta: Obj, spec: Obj, info: PodSetInfo) -> None:
    """Merge the info into the metadata and spec of a template. Raises PodSetConflictError if they conflict."""
    meta["annotations"] = merge_maps(string_map(meta, "annotations"), info.annotations, "annotations", OWN_ANNOTATIONS)
    meta["labels"] = merge_maps(string_map(meta, "labels"), info.labels, "labels", OWN_LABELS)
    selector = merge_maps(string_map(spec, "nodeSelector"), info.node_selector, "nodeSelector")
    for key, value in (
        ("nodeSelector", selector),
        ("tolerations", merge_lists(spec.get("tolerations") or (), info.tolerations)),
        ("schedulingGates", merge_lists(spec.get("schedulingGates") or (), info.gates)),
    ):
        if value:
            spec[key] = value


class BatchJobInjector(TemplateInjector):
    """Partial admission: a batch Job with a minimum parallelism is resized to the admitted count."""

    def restore(self, job: Obj, parts: Sequence[PodPart], pod_sets: Mapping[str, Obj], /) -> None:
        super().restore(job, parts, pod_sets)
        pod_set = pod_sets.get("main")
        if pod_set is not None:
            self._resize(job, int(pod_set.get("count", 1)))

    def inject(self, job: Obj, parts: Sequence[PodPart], infos: Mapping[str, PodSetInfo], /) -> None:
        super().inject(job, parts, infos)
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


class RayJobInjector(TemplateInjector):
    """A RayJob without a template of the submitter pod gets one by the injection; the restoration removes it."""

    def restore(self, job: Obj, parts: Sequence[PodPart], pod_sets: Mapping[str, Obj], /) -> None:
        super().restore(job, parts, pod_sets)
        submitter = dig(job, ("spec", "submitterPodTemplate"))
        if submitter is not None and submitter == made_submitter(parts[0].template):
            del job["spec"]["submitterPodTemplate"]


class SparkInjector(PodSetInjector):
    """Each role of a SparkApplication has the fields of a pod; the node selector is for both roles or for each."""

    def restore(self, job: Obj, parts: Sequence[PodPart], pod_sets: Mapping[str, Obj], /) -> None:
        for part in parts:
            role, pod_set = dig(job, part.at), pod_sets.get(part.name)
            if not isinstance(role, dict) or pod_set is None:
                continue
            original_template = pod_set.get("template") or {}
            for key in _META_FIELDS:
                put_or_drop(role, key, dict(string_map(original_template, "metadata", key)))
            holder = job["spec"] if "nodeSelector" in job["spec"] else role
            put_or_drop(holder, "nodeSelector", dict(string_map(original_template, "spec", "nodeSelector")))
            put_or_drop(role, "tolerations", deepcopy(dig(original_template, ("spec", "tolerations"))))

    def inject(self, job: Obj, parts: Sequence[PodPart], infos: Mapping[str, PodSetInfo], /) -> None:
        for part in parts:
            one = infos.get(part.name)
            if one is None:
                continue
            role = dig(job, part.at)
            spec = {**role, "nodeSelector": string_map(job, "spec", "nodeSelector") or string_map(role, "nodeSelector")}
            # Labels and annotations are beside the fields of the pod's spec.
            merge_pod_set_info(role, spec, one)
            put_or_drop(role, "tolerations", spec.get("tolerations"))
            holder = job["spec"] if "nodeSelector" in job["spec"] else role
            put_or_drop(holder, "nodeSelector", spec["nodeSelector"])


class AppWrapperInjector(PodSetInjector):
    """An AppWrapper has the infos beside each wrapped object."""

    def restore(self, job: Obj, _parts: Sequence[PodPart], _pod_sets: Mapping[str, Obj], /) -> None:
        for component in dig(job, ("spec", "components")) or ():
            component.pop("podSetInfos", None)

    def inject(self, job: Obj, parts: Sequence[PodPart], infos: Mapping[str, PodSetInfo], /) -> None:
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


class TrainJobInjector(PodSetInjector):
    """The templates of a TrainJob are in its runtime; the job contains patches of these, by manager."""

    def restore(self, job: Obj, _parts: Sequence[PodPart], _pod_sets: Mapping[str, Obj], /) -> None:
        patches = dig(job, ("spec", "runtimePatches"))
        if patches is None:
            return
        others = [one for one in patches if one.get("manager") != MANAGER]
        if len(others) != len(patches):
            put_or_drop(job["spec"], "runtimePatches", others)

    def inject(self, job: Obj, parts: Sequence[PodPart], infos: Mapping[str, PodSetInfo], /) -> None:
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


IN_TEMPLATES: PodSetInjector = TemplateInjector()
