"""StatefulSets: pods with names and volumes of their own, of which little may change later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed, not_supported
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_negative
from shoal.embedded.apiserver.kinds.core.volume_claims import check_claim_spec
from shoal.embedded.apiserver.kinds.labels import check_annotations, check_labels
from shoal.embedded.apiserver.kinds.pods.spec import check_pod_spec
from shoal.embedded.apiserver.kinds.pods.volume_defaults import default_claim_spec
from shoal.embedded.apiserver.kinds.workloads.deployments import TemplateStrategy
from shoal.embedded.apiserver.kinds.workloads.statuses import PARTS_OF_STATEFUL_SETS, STATEFUL_SETS, check_counts
from shoal.embedded.apiserver.kinds.workloads.templates import (
    check_selects_template,
    check_workload_selector,
)
from shoal.embedded.apiserver.names import label_fault

_FREE = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_FROZEN_WORDS = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


class StatefulSetStrategy(TemplateStrategy):
    initial_status: Mapping[str, Any] = {"replicas": 0, "availableReplicas": 0}

    def default(self, obj: Obj) -> None:
        super().default(obj)
        spec = obj["spec"]
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        if not spec.get("podManagementPolicy"):
            spec["podManagementPolicy"] = "OrderedReady"
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
            strategy.setdefault("rollingUpdate", {})
        if strategy["type"] == "RollingUpdate" and (rolling := strategy.get("rollingUpdate")) is not None:
            rolling.setdefault("partition", 0)
        kept = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        for key in ("whenDeleted", "whenScaled"):
            if not kept.get(key):
                kept[key] = "Retain"
        for claim in spec.get("volumeClaimTemplates") or ():
            claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
            claim.setdefault("metadata", {})
            default_claim_spec(claim.setdefault("spec", {}))
            claim.setdefault("status", {}).setdefault("phase", "Pending")

    def prepare_create(self, obj: Obj) -> None:
        super().prepare_create(obj)
        _forget_unserved(obj)

    def prepare_update(self, new: Obj, old: Obj) -> None:
        super().prepare_update(new, old)
        _forget_unserved(new)

    def name_fault(self, name: str, is_prefix: bool) -> str:
        """Its pods have hosts of that name, which have no dots."""
        return label_fault(name, is_prefix)

    def validate(self, obj: Obj) -> list[FieldError]:
        errors = self._check(obj)
        for place, claim in enumerate(obj["spec"].get("volumeClaimTemplates") or ()):
            check_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{place}].spec", errors)
        return errors

    def _check(self, obj: Obj) -> list[FieldError]:
        """What holds for a change as well. Claims cannot change, so they are looked at once."""
        errors: Errors = []
        spec = obj["spec"]
        _check_policies(spec, errors)
        add_negative(errors, "spec.replicas", spec.get("replicas"))
        add_negative(errors, "spec.minReadySeconds", spec.get("minReadySeconds"))
        if start := (spec.get("ordinals") or {}).get("start"):
            add_negative(errors, "spec.ordinals.start", start)
        if check_workload_selector(spec, "spec", "empty selector is invalid for statefulset", errors):
            check_selects_template(spec, "spec", errors)
            _check_template(spec, errors)
        else:
            errors.append(bad_value("spec.selector", spec["selector"], ""))
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors = self._check(new)
        if _frozen(new["spec"]) != _frozen(old["spec"]):
            errors.append(not_allowed("spec", _FROZEN_WORDS))
        return errors

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:
        return check_counts(new, old, STATEFUL_SETS, PARTS_OF_STATEFUL_SETS)


def _forget_unserved(obj: Obj) -> None:
    """`maxUnavailable` is behind a switch that 1.36 ships turned off; what is switched off is dropped in silence."""
    if rolling := obj["spec"]["updateStrategy"].get("rollingUpdate"):
        rolling.pop("maxUnavailable", None)


def _frozen(spec: Obj) -> Obj:
    return {key: value for key, value in spec.items() if key not in _FREE}


def _check_policies(spec: Obj, errors: Errors) -> None:
    if (order := spec.get("podManagementPolicy", "")) not in ("OrderedReady", "Parallel"):
        words = "must be 'OrderedReady' or 'Parallel'"
        errors.append(bad_value("spec.podManagementPolicy", order, words))
    strategy = spec.get("updateStrategy") or {}
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        if rolling is not None:
            words = "only allowed for updateStrategy 'RollingUpdate'"
            errors.append(bad_value("spec.updateStrategy.rollingUpdate", rolling, words))
    elif kind == "RollingUpdate":
        add_negative(errors, "spec.updateStrategy.rollingUpdate.partition", (rolling or {}).get("partition"))
    else:
        words = "must be 'RollingUpdate' or 'OnDelete'"
        errors.append(bad_value("spec.updateStrategy", strategy, words))
    for key, value in (spec.get("persistentVolumeClaimRetentionPolicy") or {}).items():
        if value not in ("Retain", "Delete"):
            path = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
            errors.append(not_supported(path, value, ("Retain", "Delete")))


def _check_template(spec: Obj, errors: Errors) -> None:
    """Pods mount the claims of the set as volumes, so those count as the template's own."""
    template = spec["template"]
    metadata, pod = template.get("metadata") or {}, template.get("spec") or {}
    check_labels(metadata.get("labels") or {}, "spec.template.labels", errors)
    check_annotations(metadata.get("annotations") or {}, "spec.template.annotations", errors)
    # Of templates with one name the pods use the last, so that each name counts once.
    templates = spec.get("volumeClaimTemplates") or ()
    names = [*dict.fromkeys((claim.get("metadata") or {}).get("name", "") for claim in templates)]
    own = pod.get("volumes") or []
    claimed: list[Obj] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names if name]
    replaced = [volume for volume in own if volume.get("name") not in names]
    check_pod_spec({**pod, "volumes": claimed + replaced}, "spec.template.spec", errors)
    if (policy := pod.get("restartPolicy", "")) != "Always":
        errors.append(not_supported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if pod.get("activeDeadlineSeconds") is not None:
        words = "activeDeadlineSeconds in StatefulSet is not Supported"
        errors.append(not_allowed("spec.template.spec.activeDeadlineSeconds", words))
