"""RoleBindings and ClusterRoleBindings: a role is bound for good, who has it may change."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_supported, required
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj, add_faults
from shoal.embedded.apiserver.kinds.spellings import path_segment_faults, subdomain_faults
from shoal.embedded.apiserver.names import path_segment_fault
from shoal.embedded.apiserver.strategy import Strategy

GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("ServiceAccount", "User", "Group")


class BindingStrategy(Strategy):
    counts_generation = False
    creates_on_update = True

    def __init__(self, *, is_namespaced: bool) -> None:
        self._is_namespaced = is_namespaced
        self._roles = ("Role", "ClusterRole") if is_namespaced else ("ClusterRole",)

    def default(self, obj: Obj) -> None:
        role = obj.setdefault("roleRef", {})
        role["apiGroup"] = role.get("apiGroup") or GROUP
        for subject in obj.get("subjects") or ():
            if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
                subject["apiGroup"] = GROUP

    def validate(self, obj: Obj) -> list[FieldError]:
        errors: Errors = []
        role = obj["roleRef"]
        if role.get("apiGroup") != GROUP:
            errors.append(not_supported("roleRef.apiGroup", role.get("apiGroup", ""), (GROUP,)))
        if role.get("kind") not in self._roles:
            errors.append(not_supported("roleRef.kind", role.get("kind", ""), self._roles))
        if name := role.get("name"):
            add_faults(errors, "roleRef.name", name, path_segment_faults(name))
        else:
            errors.append(required("roleRef.name"))
        for place, subject in enumerate(obj.get("subjects") or ()):
            _check_subject(subject, f"subjects[{place}]", errors, is_namespaced=self._is_namespaced)
        return errors

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors = self.validate(new)
        if new["roleRef"] != old.get("roleRef"):
            errors.append(bad_value("roleRef", new["roleRef"], "cannot change roleRef"))
        return errors

    def name_fault(self, name: str, is_prefix: bool) -> str:
        return path_segment_fault(name, is_prefix)


def _check_subject(subject: Obj, path: str, errors: Errors, *, is_namespaced: bool) -> None:
    name, group, kind = subject.get("name", ""), subject.get("apiGroup", ""), subject.get("kind", "")
    if not name:
        errors.append(required(f"{path}.name"))
    if kind == "ServiceAccount":
        if name:
            add_faults(errors, f"{path}.name", name, subdomain_faults(name))
        if group:
            errors.append(not_supported(f"{path}.apiGroup", group, ("",)))
        if not is_namespaced and not subject.get("namespace"):
            errors.append(required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != GROUP:
            errors.append(not_supported(f"{path}.apiGroup", group, (GROUP,)))
    else:
        errors.append(not_supported(f"{path}.kind", kind, _SUBJECTS))
