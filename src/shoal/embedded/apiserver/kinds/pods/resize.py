"""Resizing a running pod: cpu and memory of its containers, while its class of service stays."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_allowed
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj
from shoal.embedded.apiserver.kinds.pods.aggregate import service_class
from shoal.embedded.apiserver.kinds.pods.spec import check_pod_spec
from shoal.embedded.apiserver.kinds.pods.update import check_pod_annotations, difference
from shoal.embedded.apiserver.strategy import Strategy, keep_metadata

_LISTS = ("containers", "initContainers")
_RESIZABLE = ("cpu", "memory")
_SIZES = ("resources", "resizePolicy")


class ResizeStrategy(Strategy):
    """Of the subresource `resize`: sizes are taken over and nothing else.

    Containers that came, went or changed places are left as they were sent, so that the validation refuses them.
    """

    def prepare_update(self, new: Obj, old: Obj) -> None:
        spec, before = new.get("spec") or {}, old["spec"]
        if "status" in old:
            new["status"] = old["status"]
        if any(len(spec.get(key) or ()) != len(before.get(key) or ()) for key in _LISTS):
            return
        sized = {key: _sized(spec[key], before[key]) for key in _LISTS if before.get(key)}
        new["spec"] = {**before, **sized}
        keep_metadata(new, old)

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors: Errors = []
        check_pod_annotations(new, old, errors)
        spec, before = new["spec"], old["spec"]
        check_pod_spec(spec, "spec", errors)
        if service_class(spec) != (old.get("status") or {}).get("qosClass", service_class(before)):
            words = "Pod QOS Class may not change as a result of resizing"
            errors.append(bad_value("spec", (old.get("status") or {}).get("qosClass", ""), words))
        as_before = dict(spec)
        for key in _LISTS:
            if len(spec.get(key) or ()) != len(before.get(key) or ()):
                errors.append(not_allowed(f"spec.{key}", "containers may not be added or removed on resize"))
                return errors
            if key in spec:
                as_before[key] = _with_old_sizes(spec[key], before.get(key) or [])
        if as_before != before:
            words = f"only cpu and memory resources are mutable\n{difference(as_before, before)}"
            errors.append(not_allowed("spec", words))
        return errors


def _sized(new: list[Obj], old: list[Obj]) -> list[Obj]:
    pairs = list(zip(new, old, strict=True))
    if any(one.get("name") != former.get("name") for one, former in pairs):
        return new
    return [_with_new_size(one, former) for one, former in pairs]


def _with_new_size(container: Obj, former: Obj) -> Obj:
    kept = {key: value for key, value in former.items() if key not in _SIZES}
    return kept | {key: container[key] for key in _SIZES if key in container}


def _with_old_sizes(new: list[Obj], old: list[Obj]) -> list[Obj]:
    return [_with_old_size(one, former) for one, former in zip(new, old, strict=True)]


def _with_old_size(container: Obj, former: Obj) -> Obj:
    sizes = dict(container.get("resources") or {})
    had = former.get("resources") or {}
    for side in ("limits", "requests"):
        merged = {name: value for name, value in (sizes.get(side) or {}).items() if name not in _RESIZABLE}
        merged |= {name: value for name, value in (had.get(side) or {}).items() if name in _RESIZABLE}
        if merged or side in had:
            sizes[side] = merged
        else:
            sizes.pop(side, None)
    result = {**container, "resources": sizes}
    if "resizePolicy" in former:
        result["resizePolicy"] = former["resizePolicy"]
    else:
        result.pop("resizePolicy", None)
    return result


RESIZE = ResizeStrategy()
