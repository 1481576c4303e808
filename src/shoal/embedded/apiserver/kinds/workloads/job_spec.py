"""Validates the spec of a Job or of the template of a CronJob."""

from __future__ import annotations

import re

from shoal.embedded.apiserver.field_errors import bad_value, not_supported, required, too_long
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_changed, add_faults, add_negative
from shoal.embedded.apiserver.kinds.spellings import subdomain_faults
from shoal.embedded.apiserver.kinds.workloads.job_policies import check_failure_policy, check_success_policy
from shoal.embedded.apiserver.kinds.workloads.templates import check_template

_COUNTS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_MODES = ("NonIndexed", "Indexed")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_MOST_INDEXES = 100_000
_LONGEST_MANAGER = 63
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_FIXED = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_PLACING = ("nodeSelector", "affinity", "tolerations", "schedulingGates")


def check_job_spec(spec: Obj, path: str, errors: Errors) -> None:
    for key in _COUNTS:
        if (value := spec.get(key)) is not None and value < 0:
            add_negative(errors, f"{path}.{key}", value)
    if (manager := spec.get("managedBy")) is not None:
        _check_manager(manager, f"{path}.managedBy", errors)
    mode = spec.get("completionMode")
    if mode is not None and mode not in _MODES:
        errors.append(not_supported(f"{path}.completionMode", mode, _MODES))
    if mode == "Indexed":
        _check_indexed(spec, path, errors)
    else:
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(key) is not None:
                errors.append(bad_value(f"{path}.{key}", spec[key], "requires indexed completion mode"))
    if (policy := spec.get("podReplacementPolicy")) is not None and policy not in _REPLACEMENTS:
        errors.append(not_supported(f"{path}.podReplacementPolicy", policy, _REPLACEMENTS))
    template = spec.get("template") or {}
    check_template(template, f"{path}.template", errors)
    restart = (template.get("spec") or {}).get("restartPolicy", "")
    if restart not in ("OnFailure", "Never"):
        errors.append(required(f"{path}.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
    if (failure := spec.get("podFailurePolicy")) is not None:
        if restart != "Never":
            words = 'only "Never" is supported when podFailurePolicy is specified'
            errors.append(bad_value(f"{path}.template.spec.restartPolicy", restart, words))
        check_failure_policy(spec, failure, f"{path}.podFailurePolicy", errors)
    if (success := spec.get("successPolicy")) is not None:
        check_success_policy(spec, success, f"{path}.successPolicy", errors)


def _check_manager(manager: str, path: str, errors: Errors) -> None:
    """Who looks after the job: a domain and a path there."""
    domain, _, rest = manager.partition("/")
    if not manager:
        errors.append(required(path))
    elif not domain or not rest:
        errors.append(bad_value(path, manager, 'must be a domain-prefixed path (such as "acme.io/foo")'))
    else:
        add_faults(errors, path, domain, subdomain_faults(domain))
        if not re.fullmatch(_HTTP_PATH, rest):
            errors.append(bad_value(path, rest, f"Invalid path (regex used for validation is '{_HTTP_PATH}')"))
    if len(manager.encode()) > _LONGEST_MANAGER:
        errors.append(too_long(path, _LONGEST_MANAGER))


def _check_indexed(spec: Obj, path: str, errors: Errors) -> None:
    completions = spec.get("completions")
    if completions is None:
        errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if (parallelism := spec.get("parallelism") or 0) > _MOST_INDEXES:
        words = f"must be less than or equal to {_MOST_INDEXES} when completion mode is Indexed"
        errors.append(bad_value(f"{path}.parallelism", parallelism, words))
    most = spec.get("maxFailedIndexes")
    if most is not None and completions is not None and most > completions:
        words = "must be less than or equal to completions"
        errors.append(bad_value(f"{path}.maxFailedIndexes", most, words))
    if most is not None and spec.get("backoffLimitPerIndex") is None:
        words = "when maxFailedIndexes is specified"
        errors.append(required(f"{path}.backoffLimitPerIndex", words))


def check_job_update(new: Obj, old: Obj, errors: Errors) -> None:
    spec, before = new["spec"], old["spec"]
    _check_completions(spec, before, errors)
    add_changed(errors, "spec.selector", spec.get("selector"), before.get("selector"))
    template, former = spec.get("template"), before.get("template")
    if template != former:
        if _is_placeable(old):
            former = _with_placing(former or {}, template or {})
            # Of what may change in part, Kubernetes compares and names the part that may not.
            add_changed(errors, "spec.template.spec", (template or {}).get("spec"), former.get("spec"))
        else:
            add_changed(errors, "spec.template", template, former)
    for key in _FIXED:
        add_changed(errors, f"spec.{key}", spec.get(key), before.get(key))


def _check_completions(spec: Obj, before: Obj, errors: Errors) -> None:
    """An indexed job may grow and shrink while it runs all its indexes at once."""
    wanted, had = spec.get("completions"), before.get("completions")
    if spec.get("completionMode") != "Indexed":
        add_changed(errors, "spec.completions", wanted, had)
        return
    if wanted == had or wanted is None or had is None:
        return
    if wanted != spec.get("parallelism"):
        words = "can only be modified in tandem with spec.parallelism"
        errors.append(bad_value("spec.completions", wanted, words))


def _is_placeable(job: Obj) -> bool:
    """Suspended and without pods: queues may still say where they go."""
    if not job["spec"].get("suspend"):
        return False
    status = job.get("status") or {}
    if status.get("active"):
        return False
    if "startTime" not in status:
        return True
    conditions = status.get("conditions") or ()
    return any(one.get("type") == "Suspended" and one.get("status") == "True" for one in conditions)


def _with_placing(template: Obj, wanted: Obj) -> Obj:
    """The old template with what a suspended job may change taken from the new one."""
    metadata, spec = dict(template.get("metadata") or {}), dict(template.get("spec") or {})
    said, asked = wanted.get("metadata") or {}, wanted.get("spec") or {}
    for into, source, keys in ((metadata, said, ("labels", "annotations")), (spec, asked, _PLACING)):
        for key in keys:
            if key in source:
                into[key] = source[key]
            else:
                into.pop(key, None)
    for key in ("containers", "initContainers"):
        if key in spec and len(spec[key]) == len(asked.get(key) or ()):
            pairs = zip(spec[key], asked[key], strict=True)
            spec[key] = [{**one, "resources": after.get("resources", {})} for one, after in pairs]
    return {**template, "metadata": metadata, "spec": spec}
