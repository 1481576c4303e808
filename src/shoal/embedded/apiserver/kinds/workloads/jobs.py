"""Jobs: what is filled in, among it the selector made from the job's own uid, and what stays as it was."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, required
from shoal.embedded.apiserver.kinds.complaints import MAX_INT32, Errors, Obj
from shoal.embedded.apiserver.kinds.labels import check_selector
from shoal.embedded.apiserver.kinds.spellings import dns_label_faults
from shoal.embedded.apiserver.kinds.workloads.deployments import TemplateStrategy
from shoal.embedded.apiserver.kinds.workloads.job_spec import check_job_spec, check_job_update
from shoal.embedded.apiserver.kinds.workloads.job_status import check_job_status
from shoal.embedded.apiserver.kinds.workloads.templates import MISMATCH
from shoal.embedded.apiserver.label_selectors import selects

UID_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")
NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")


class JobStrategy(TemplateStrategy):
    orphans_by_default = True
    orphaning_warning = (
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or "
        "set propagationPolicy=Orphan to suppress this warning"
    )

    def default(self, obj: Obj) -> None:
        super().default(obj)
        spec = obj["spec"]
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = spec["parallelism"] = 1
        spec.setdefault("parallelism", 1)
        spec.setdefault("backoffLimit", MAX_INT32 if spec.get("backoffLimitPerIndex") is not None else 6)
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        spec.setdefault("manualSelector", False)
        policy = spec.get("podFailurePolicy")
        spec.setdefault("podReplacementPolicy", "TerminatingOrFailed" if policy is None else "Failed")
        for rule in (policy or {}).get("rules") or ():
            for pattern in rule.get("onPodConditions") or ():
                if not pattern.get("status"):
                    pattern["status"] = "True"
        labels = (spec["template"].get("metadata") or {}).get("labels")
        metadata = obj.setdefault("metadata", {})
        if labels and not metadata.get("labels"):
            # The very same map, by which `prepare_create` knows that the job itself had no labels.
            metadata["labels"] = labels

    def prepare_create(self, obj: Obj) -> None:
        """Needs the uid, which the operation gives before."""
        super().prepare_create(obj)
        if not obj["spec"].get("manualSelector"):
            _own_selector(obj)

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec = obj["spec"]
        if not spec.get("manualSelector"):
            _check_own_selector(obj, errors)
        _check_name(obj, errors)
        check_job_spec(spec, "spec", errors)
        _check_selector(spec, errors)
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors: Errors = []
        check_job_spec(new["spec"], "spec", errors)
        _check_selector(new["spec"], errors)
        # Kubernetes checks the spec before and with the update.
        errors *= 2
        check_job_update(new, old, errors)
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:
        return check_job_status(new, old)

    def fields(self, obj: Obj) -> Mapping[str, str]:
        return {"status.successful": str((obj.get("status") or {}).get("succeeded", 0))}

    def selectable(self) -> tuple[str, ...]:
        return ("status.successful",)


def _check_name(job: Obj, errors: Errors) -> None:
    """The pods of an indexed job are named after it and their index, and that name is their host's."""
    spec, name = job["spec"], job["metadata"].get("name", "")
    if spec.get("completionMode") != "Indexed" or not spec.get("completions"):
        return
    last = f"{name}-{spec['completions'] - 1}"
    if faults := dns_label_faults(last):
        words = f"will not able to create pod with invalid DNS label: {last}"
        errors.extend(bad_value("metadata.name", name, words) for _ in faults)


def _own_selector(job: Obj) -> None:
    """A unique selector, so that two jobs never select the same pods."""
    metadata, spec = job["metadata"], job["spec"]
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    template = spec["template"].setdefault("metadata", {})
    own = template.get("labels") or {}
    generated = dict.fromkeys(UID_LABELS, uid) | dict.fromkeys(NAME_LABELS, name)
    labels = template["labels"] = {**generated, **own}
    if not metadata.get("labels") or metadata["labels"] is own:
        metadata["labels"] = dict(labels)
    selector = spec.setdefault("selector", {})
    selector.setdefault("matchLabels", {})[UID_LABELS[0]] = uid


def _check_own_selector(job: Obj, errors: Errors) -> None:
    metadata, spec = job["metadata"], job["spec"]
    selector = spec.get("selector")
    if selector is None:
        return
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    if not uid:
        errors.append(required("metadata.uid"))
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    wanted = dict.fromkeys(UID_LABELS, uid) | dict.fromkeys(NAME_LABELS, name)
    for key, value in wanted.items():
        path = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            errors.append(required(path, f"must be '{value}'"))
        elif labels[key] != value:
            errors.append(bad_value(path, labels, f"must be '{value}'"))
    if not selects(selector, wanted):
        errors.append(bad_value("spec.selector", selector, "`selector` not auto-generated"))


def _check_selector(spec: Obj, errors: Errors) -> None:
    selector = spec.get("selector")
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    if selector is None:
        errors.append(required("spec.selector"))
    else:
        check_selector(selector, "spec.selector", errors)
    if selector is None or not selects(selector, labels):
        errors.append(bad_value("spec.template.metadata.labels", labels, MISMATCH))
