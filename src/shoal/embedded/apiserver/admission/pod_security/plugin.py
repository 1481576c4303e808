"""The PodSecurity plugin: refuses pods, warns of pods and of templates that would make such, and of label changes.

Audit mode leaves no trace here, as there is no audit log; its labels are read and checked all the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.admission.plugin import POD, AdmissionPlugin, forbid
from shoal.embedded.apiserver.admission.pod_security.levels import LEVELS, Standard, details, reasons, violations
from shoal.embedded.apiserver.admission.pod_security.pod import pod_of
from shoal.embedded.apiserver.admission.pod_security.policy import policy_of
from shoal.embedded.apiserver.admission.pod_security.significance import is_significant
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.reading import Obj, Reader
from shoal.embedded.apiserver.resource import Resource

_NAMESPACES = ("", "namespaces")
_IGNORED = frozenset({"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"})
_TEMPLATES: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "podtemplates"): ("template",),
    ("", "replicationcontrollers"): ("spec", "template"),
    ("apps", "replicasets"): ("spec", "template"),
    ("apps", "deployments"): ("spec", "template"),
    ("apps", "statefulsets"): ("spec", "template"),
    ("apps", "daemonsets"): ("spec", "template"),
    ("batch", "jobs"): ("spec", "template"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
_MOST_PODS = 3000


class PodSecurity(AdmissionPlugin):
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        if operation not in ("CREATE", "UPDATE"):
            return False
        if resource.home == POD:
            return subresource not in _IGNORED
        return not subresource and (resource.home == _NAMESPACES or resource.home in _TEMPLATES)

    def validate(self, admission: AdmissionAttributes) -> None:
        home = admission.call.resource.home
        if admission.obj is None:
            return
        if home == _NAMESPACES:
            self._namespace(admission, admission.obj)
        elif home == POD:
            self._pod(admission, admission.obj)
        else:
            self._template(admission, admission.obj)

    def _labels(self, admission: AdmissionAttributes) -> dict[str, str] | None:
        namespace = self._reader.get("", "namespaces", "", admission.namespace)
        labels: dict[str, str] | None = namespace["metadata"].get("labels") if namespace else None
        return labels

    def _pod(self, admission: AdmissionAttributes, pod: Obj) -> None:
        policy, faults = policy_of(self._labels(admission))
        if not faults and policy.enforce.level == policy.warn.level == "privileged":
            return
        if admission.operation == "UPDATE" and admission.old and not is_significant(pod, admission.old):
            return
        seen = pod_of(pod["metadata"], pod["spec"])
        found = violations(policy.enforce, seen)
        if found:
            raise forbid(admission, f'violates PodSecurity "{policy.enforce}": {details(found)}')
        if policy.warn != policy.enforce:
            _warn(admission, policy.warn, pod["metadata"], pod["spec"])

    def _template(self, admission: AdmissionAttributes, obj: Obj) -> None:
        policy, _ = policy_of(self._labels(admission))
        if policy.warn.level == "privileged":
            return
        found: Obj | None = obj
        for step in _TEMPLATES[admission.call.resource.home]:
            found = (found or {}).get(step)
        if found:
            _warn(admission, policy.warn, found.get("metadata") or {}, found.get("spec") or {})

    def _namespace(self, admission: AdmissionAttributes, namespace: Obj) -> None:
        policy, faults = policy_of(namespace["metadata"].get("labels"))
        old = admission.old if admission.operation == "UPDATE" else None
        before, old_faults = policy_of(((old or {}).get("metadata") or {}).get("labels"))
        if faults and (old is None or faults != old_faults):
            raise status.invalid("Namespace", "", namespace["metadata"].get("name", ""), faults)
        if old is None or policy.enforce == before.enforce:
            return
        if policy.enforce.minor == before.enforce.minor and not _is_stricter(policy.enforce, before.enforce):
            return
        name = namespace["metadata"].get("name", "")
        for text in existing_violations(policy.enforce, name, self._reader.all("", "pods", name)):
            admission.warn(text)


def existing_violations(standard: Standard, namespace: str, pods: Iterable[Obj]) -> list[str]:
    """What would not be let in again under the standard, pods with the same faults in one line."""
    if standard.level == "privileged":
        return []
    listed = list(pods)
    named: dict[str, list[str]] = {}
    for pod in listed[:_MOST_PODS]:
        found = violations(standard, pod_of(pod["metadata"], pod["spec"]))
        if found:
            named.setdefault(reasons(found), []).append(pod["metadata"]["name"])
    reported = []
    if len(listed) > _MOST_PODS:
        reported.append(
            f"new PodSecurity enforce level only checked against the first {_MOST_PODS} of {len(listed)} existing pods"
        )
    if named:
        reported.append(
            f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{standard}"'
        )
    return reported + sorted(f"{_together(names)}: {why}" for why, names in named.items())


def _together(names: list[str]) -> str:
    others = len(names) - 1
    if not others:
        return names[0]
    return f"{min(names)} (and {others} other {'pod' if others == 1 else 'pods'})"


def _is_stricter(new: Standard, old: Standard) -> bool:
    return LEVELS.index(new.level) > LEVELS.index(old.level)


def _warn(admission: AdmissionAttributes, standard: Standard, metadata: Obj, spec: Obj) -> None:
    found = violations(standard, pod_of(metadata, spec))
    if found:
        admission.warn(f'would violate PodSecurity "{standard}": {details(found)}')
