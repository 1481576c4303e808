"""The strategies of pods and their subresources."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj
from shoal.embedded.apiserver.kinds.pods.aggregate import service_class
from shoal.embedded.apiserver.kinds.pods.defaults import default_pod
from shoal.embedded.apiserver.kinds.pods.spec import check_only_pods, check_pod_spec
from shoal.embedded.apiserver.kinds.pods.status import check_pod_status, settle_addresses
from shoal.embedded.apiserver.kinds.pods.update import check_pod_update
from shoal.embedded.apiserver.kinds.pods.warnings import name_warnings, pod_warnings
from shoal.embedded.apiserver.strategy import Strategy

_SELECTABLE = (
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
    "status.phase", "status.podIP", "status.nominatedNodeName",
)  # fmt: skip
_GATED: Obj = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


class PodStrategy(Strategy):
    has_status = True
    counts_generation = True
    returns_deleted = True
    is_graceful = True

    def default(self, obj: Obj) -> None:
        default_pod(obj)

    def prepare_create(self, obj: Obj) -> None:
        spec = obj["spec"]
        status: Obj = {"phase": "Pending", "qosClass": service_class(spec)}
        obj["status"] = status
        if spec.get("schedulingGates"):
            status["conditions"] = [_GATED | {"lastTransitionTime": obj["metadata"].get("creationTimestamp")}]

    def prepare_status(self, new: Obj, old: Obj) -> None:
        """A kubelet may touch labels and annotations with the status; owners, spec and class of service stay."""
        keep_all_but_status(new, old)
        owners = old["metadata"].get("ownerReferences")
        new["metadata"].pop("ownerReferences", None)
        if owners:
            new["metadata"]["ownerReferences"] = owners
        status = new["status"] = dict(new.get("status") or {})
        if quality := (old.get("status") or {}).get("qosClass"):
            status["qosClass"] = quality
        settle_addresses(status)

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        spec = obj["spec"]
        annotations = obj["metadata"].get("annotations")
        if annotations and "kubernetes.io/config.mirror" in annotations and not spec.get("nodeName"):
            words = "must set spec.nodeName if mirror pod annotation is set"
            key = "kubernetes.io/config.mirror"
            errors.append(bad_value(f"metadata.annotations[{key}]", annotations[key], words))
        check_pod_spec(spec, "spec", errors)
        check_only_pods(spec, errors)
        _check_tokens(spec, errors)
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        """What is stored was looked at when it was written, so only a changed spec is looked at again."""
        changed = check_pod_update(new, old)
        if new["spec"] == old["spec"]:
            return changed
        errors: Errors = []
        check_pod_spec(new["spec"], "spec", errors)
        _check_tokens(new["spec"], errors)
        return errors + changed

    def validate_status(self, new: Obj, old: Obj) -> list[FieldError]:
        return check_pod_status(new, old)

    def fields(self, obj: Obj) -> Mapping[str, str]:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        addresses = status.get("podIPs")
        return {
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.restartPolicy": spec.get("restartPolicy", ""),
            "spec.schedulerName": spec.get("schedulerName", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            "status.phase": status.get("phase", ""),
            "status.podIP": addresses[0].get("ip", "") if addresses else status.get("podIP", ""),
            "status.nominatedNodeName": status.get("nominatedNodeName", ""),
        }

    def selectable(self) -> tuple[str, ...]:
        return _SELECTABLE

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        if old is not None:
            return []
        metadata = new["metadata"]
        return name_warnings(metadata.get("name", "")) + pod_warnings(metadata, new["spec"], "")

    def deletion_grace(self, obj: Obj, asked_s: int | None) -> int:
        spec = obj["spec"]
        if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in TERMINAL_PHASES:
            return 0
        grace_s: int = spec.get("terminationGracePeriodSeconds", 0) if asked_s is None else asked_s
        return 1 if grace_s < 0 else grace_s


def _check_tokens(spec: Obj, errors: Errors) -> None:
    """A token is one of the pod's ServiceAccount. Admission names that for a new pod; a changed pod has to name it."""
    if spec.get("serviceAccountName"):
        return
    for place, volume in enumerate(spec.get("volumes") or ()):
        for position, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                path = f"spec.volumes[{place}].projected.sources[{position}].serviceAccountToken"
                errors.append(not_allowed(path, "must not be specified when serviceAccountName is not set"))


def keep_all_but_status(new: Obj, old: Obj) -> None:
    for key in {*new, *old} - {"status", "metadata", "apiVersion", "kind"}:
        if key in old:
            new[key] = old[key]
        else:
            new.pop(key)
