"""Every pod acts as a service account: the namespace's `default` where it names none, with its token in reach.

The token is a projected volume of three sources, mounted where client libraries look for it. Its name carries a
suffix, since a pod may have a volume of the plain name; where the suffix comes from is the caller's choice, because
nothing here draws lots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shoal.embedded.apiserver.admission.mountable_secrets import secrets_fault
from shoal.embedded.apiserver.admission.plugin import POD, AdmissionPlugin, forbid, spec_of
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.reading import Obj, Reader
from shoal.embedded.apiserver.resource import Resource

VOLUME_PREFIX = "kube-api-access-"
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
MIRROR = "kubernetes.io/config.mirror"
_TOKEN_SECONDS = 3607
_READABLE = 0o644


class ServiceAccount(AdmissionPlugin):
    def __init__(self, reader: Reader, suffix: Callable[[], str]) -> None:
        self._reader = reader
        self._suffix = suffix

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        if resource.home != POD:
            return False
        return operation == "CREATE" if not subresource else (operation, subresource) == _EPHEMERAL

    def mutate(self, admission: AdmissionAttributes) -> None:
        pod = admission.obj
        if pod is None or admission.call.subresource:
            return
        spec = spec_of(pod)
        if _is_mirror(pod):
            # Refused before anything else looks at it, as in Kubernetes.
            if fault := _mirror_fault(spec):
                raise forbid(admission, fault)
            return
        if not spec.get("serviceAccountName"):
            spec["serviceAccountName"] = spec["serviceAccount"] = "default"
        account = self._account(admission, spec)
        if _mounts(account, spec):
            self._mount(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(secret) for secret in account["imagePullSecrets"]]

    def validate(self, admission: AdmissionAttributes) -> None:
        pod = admission.obj
        if pod is None:
            return
        spec = pod["spec"]
        if _is_mirror(pod):
            fault = _mirror_fault(spec)
        elif not spec.get("serviceAccountName"):
            fault = f"no service account specified for pod {admission.namespace}/{admission.name}"
        else:
            fault = secrets_fault(self._account(admission, spec), spec)
        if fault:
            raise forbid(admission, fault)

    def _account(self, admission: AdmissionAttributes, spec: Obj) -> Obj:
        name = spec["serviceAccountName"]
        found = self._reader.get("", "serviceaccounts", admission.namespace, name)
        if found is None:
            where = f"{admission.namespace}/{name}"
            words = f'error looking up service account {where}: serviceaccount "{name}" not found'
            raise forbid(admission, words)
        return found

    def _mount(self, spec: Obj) -> None:
        volumes = spec.get("volumes") or []
        name = next((name for one in volumes if (name := one.get("name", "")).startswith(VOLUME_PREFIX)), "")
        bare = [one for one in _containers(spec) if not _has_mount(one)]
        if not bare:
            return
        if not name:
            name = VOLUME_PREFIX + self._suffix()
            spec["volumes"] = [*volumes, _token_volume(name)]
        for container in bare:
            mount = {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}
            container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]


_EPHEMERAL = ("UPDATE", "ephemeralcontainers")


def suffixes() -> Callable[[], str]:
    """Five letters that differ from call to call, in an order that never changes."""
    letters = "bcdfghjklmnpqrstvwxz2456789"
    count = len(letters) ** 5
    walked = 0

    def next_suffix() -> str:
        nonlocal walked
        # The step has no factor in common with the count: every suffix comes once before any comes twice.
        walked = (walked + 9_876_541) % count
        rest, text = walked, ""
        for _ in range(5):
            rest, at = divmod(rest, len(letters))
            text += letters[at]
        return text

    return next_suffix


def _is_mirror(pod: Obj) -> bool:
    return MIRROR in (pod["metadata"].get("annotations") or ())


def _mounts(account: Obj, spec: Obj) -> bool:
    for wish in (spec.get("automountServiceAccountToken"), account.get("automountServiceAccountToken")):
        if wish is not None:
            return bool(wish)
    return True


def _containers(spec: Obj) -> Iterator[Obj]:
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()


def _has_mount(container: Obj) -> bool:
    return any(mount.get("mountPath") == MOUNT_PATH for mount in container.get("volumeMounts") or ())


def _token_volume(name: str) -> Obj:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": _READABLE}}


def _mirror_fault(spec: Obj) -> str:
    if spec.get("serviceAccountName"):
        return "a mirror pod may not reference service accounts"
    for volume in spec.get("volumes") or ():
        if "secret" in volume:
            return "a mirror pod may not reference secrets"
        if any("serviceAccountToken" in source for source in (volume.get("projected") or {}).get("sources") or ()):
            return "a mirror pod may not use ServiceAccountToken volume projections"
    return ""
