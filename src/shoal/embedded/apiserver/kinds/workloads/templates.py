"""Validates pod templates, their selectors and percentages of replicas for all workload kinds."""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.field_errors import bad_value, not_allowed, not_supported, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults, add_negative
from shoal.embedded.apiserver.kinds.labels import check_annotations, check_labels, check_selector
from shoal.embedded.apiserver.kinds.pods.spec import check_pod_spec
from shoal.embedded.apiserver.kinds.spellings import percent_faults
from shoal.embedded.apiserver.label_selectors import is_empty, selects

MISMATCH = "`selector` does not match template `labels`"


def check_template(template: Obj, path: str, errors: Errors, *, late_volumes: bool = False) -> None:
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    # Kubernetes says `template.labels` where the field is `template.metadata.labels`; clients see its words.
    check_labels(metadata.get("labels") or {}, f"{path}.labels", errors)
    check_annotations(metadata.get("annotations") or {}, f"{path}.annotations", errors)
    check_pod_spec(spec, f"{path}.spec", errors, late_volumes=late_volumes)
    if spec.get("ephemeralContainers"):
        words = "ephemeral containers not allowed in pod template"
        errors.append(not_allowed(f"{path}.spec.ephemeralContainers", words))


def check_running_template(template: Obj, path: str, owner: str, errors: Errors) -> None:
    """Of workloads whose pods run until they are stopped."""
    spec = template.get("spec") or {}
    if (policy := spec.get("restartPolicy", "")) != "Always":
        errors.append(not_supported(f"{path}.spec.restartPolicy", policy, ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        words = f"activeDeadlineSeconds in {owner} is not Supported"
        errors.append(not_allowed(f"{path}.spec.activeDeadlineSeconds", words))


def check_workload_selector(spec: Obj, path: str, empty_words: str, errors: Errors) -> bool:
    """A label selector that has to be there and to say something; whether it can be used to select."""
    selector = spec.get("selector")
    if selector is None:
        errors.append(required(f"{path}.selector"))
        return True
    before = len(errors)
    check_selector(selector, f"{path}.selector", errors)
    can_select = len(errors) == before
    if is_empty(selector):
        errors.append(bad_value(f"{path}.selector", selector, empty_words))
    return can_select


def check_selects_template(spec: Obj, path: str, errors: Errors) -> None:
    """A missing selector selects nothing, which does not match either."""
    selector = spec.get("selector")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if selector is None or (not is_empty(selector) and not selects(selector, labels)):
        errors.append(bad_value(f"{path}.template.metadata.labels", labels, MISMATCH))


def check_count_or_share(value: Any, path: str, errors: Errors) -> None:
    if isinstance(value, str):
        add_faults(errors, path, value, percent_faults(value))
    else:
        add_negative(errors, path, value)


def check_share_of_all(value: Any, path: str, errors: Errors) -> None:
    if isinstance(value, str) and not percent_faults(value) and int(value[:-1]) > 100:
        errors.append(bad_value(path, value, "must not be greater than 100%"))


def amount_of(value: Any) -> int:
    """A count or share as a number; only whether it is zero can be read from it."""
    if isinstance(value, str):
        return 0 if percent_faults(value) else int(value[:-1])
    return int(value or 0)
