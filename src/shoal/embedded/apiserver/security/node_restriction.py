"""NodeRestriction: a node writes its own objects only, and nothing by which it would draw more work to itself.

The authorizer decides by what a path names; what an object says, and its owner, is checked here. Only nodes
are restricted. The plugin runs before objects are changed on behalf of the server, as in Kubernetes.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.admission.plugin import AdmissionPlugin, forbid
from shoal.embedded.apiserver.admission.service_account import MIRROR
from shoal.embedded.apiserver.calls import Actor, AdmissionAttributes
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.resource import Resource
from shoal.embedded.apiserver.security.node_authorizer import LEASES, NODE_PREFIX, node_of
from shoal.embedded.apiserver.security.node_pods import CLAIMS, CONFIG_MAPS, RESOURCE_CLAIMS, SECRETS, references
from shoal.embedded.apiserver.security.verdict import AccessDecision

Obj = dict[str, Any]
Allows = Callable[[Actor, RequestInfo], AccessDecision]
_SIGNERS = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")
_OWN_LABELS = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    }
)
"""Labels of Kubernetes' own domains that a kubelet sets on its node, beside those of the domains below."""
_OWN_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESTRICTED_DOMAIN = "node-restriction.kubernetes.io"
_CLAIM_STATUS = ("capacity", "conditions", "allocatedResources", "allocatedResourceStatuses")
_VOLUMES_OF_OBJECTS = {
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
}
_PROJECTED_OBJECTS = {
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}


class NodeRestriction(AdmissionPlugin):
    def __init__(self, reader: Reader, allows: Allows) -> None:
        self._reader = reader
        self._allows = allows
        self._checks: Mapping[tuple[str, ...], Callable[[AdmissionAttributes, str], None]] = {
            ("", "pods"): self._pod,
            ("", "nodes"): _node,
            ("", "persistentvolumeclaims"): _claim,
            ("", "serviceaccounts"): self._token,
            ("coordination.k8s.io", "leases"): _lease,
            ("storage.k8s.io", "csinodes"): _csi_node,
            ("resource.k8s.io", "resourceslices"): _slice,
            ("certificates.k8s.io", "certificatesigningrequests"): _request,
        }

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:  # noqa: ARG002 - the check looks at both
        return tuple(resource.home) in self._checks

    def mutate(self, admission: AdmissionAttributes) -> None:
        node = node_of(admission.call.actor)
        if node is None:
            return
        if not node:
            raise forbid(admission, f'could not determine node from user "{admission.call.actor.name}"')
        self._checks[tuple(admission.call.resource.home)](admission, node)

    # -- pods -------------------------------------------------------------------------------------------------------

    def _pod(self, admission: AdmissionAttributes, node: str) -> None:
        operation = admission.operation
        match admission.call.subresource:
            case "" if operation == "CREATE":
                self._mirror_pod(admission, node)
            case "" if operation == "DELETE":
                if _node_name(admission.old) != node:
                    raise forbid(admission, f'node "{node}" can only delete pods with spec.nodeName set to itself')
            case "":
                words = f'unexpected operation "{operation}", node "{node}" can only create and delete mirror pods'
                raise forbid(admission, words)
            case "status" if operation == "UPDATE":
                _pod_status(admission, node)
            case "eviction" if operation == "CREATE":
                pod = self._reader.get("", "pods", admission.namespace, admission.name)
                if pod is None:
                    raise status.not_found("pod", "", admission.name)
                if _node_name(pod) != node:
                    raise forbid(admission, f"node {node} can only evict pods with spec.nodeName set to itself")
            case "status" | "eviction":
                raise forbid(admission, f'unexpected operation "{operation}"')
            case other:
                words = f"unexpected pod subresource \"{other}\", only 'status' and 'eviction' are allowed"
                raise forbid(admission, words)

    def _mirror_pod(self, admission: AdmissionAttributes, node: str) -> None:
        pod = admission.written
        metadata = pod["metadata"]
        if MIRROR not in (metadata.get("annotations") or {}):
            words = f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods'
            raise forbid(admission, words)
        if _node_name(pod) != node:
            raise forbid(admission, f'node "{node}" can only create pods with spec.nodeName set to itself')
        owners = metadata.get("ownerReferences") or []
        fault = _owner_fault(owners, node)
        if fault:
            raise forbid(admission, f'node "{node}" {fault}')
        found = self._reader.get("", "nodes", "", node)
        if found is None:
            raise status.not_found("node", "", node)
        if owners[0].get("uid") != found["metadata"].get("uid"):
            said = f"expected {owners[0].get('uid')} got {found['metadata'].get('uid')}"
            raise forbid(admission, f"node {node} UID mismatch: {said}")
        reference = object_reference(pod)
        if reference:
            raise forbid(admission, f'node "{node}" can not create pods that reference {reference}')

    # -- tokens -----------------------------------------------------------------------------------------------------

    def _token(self, admission: AdmissionAttributes, node: str) -> None:
        if admission.operation != "CREATE" or admission.call.subresource != "token":
            return
        spec = admission.written.get("spec") or {}
        bound = spec.get("boundObjectRef") or {}
        if (bound.get("apiVersion"), bound.get("kind")) != ("v1", "Pod") or not bound.get("name"):
            raise forbid(admission, "node requested token not bound to a pod")
        if not bound.get("uid"):
            raise forbid(admission, "node requested token with a pod binding without a uid")
        pod = self._reader.get("", "pods", admission.namespace, bound["name"])
        if pod is None:
            raise status.not_found("pod", "", bound["name"])
        if bound["uid"] != pod["metadata"].get("uid"):
            words = (
                f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise forbid(admission, words)
        if _node_name(pod) != node:
            raise forbid(admission, "node requested token bound to a pod scheduled on a different node")
        self._audience(admission, pod, spec.get("audiences") or [])

    def _audience(self, admission: AdmissionAttributes, pod: Obj, audiences: list[str]) -> None:
        if len(audiences) > 1:
            raise forbid(admission, "node may only request 0 or 1 audiences")
        audience = audiences[0] if audiences else ""
        if audience in self._audiences(pod):
            return
        verb, actor = "request-serviceaccounts-token-audience", admission.call.actor
        asked = RequestInfo(verb, "", "v1", audience, "", admission.namespace, admission.name)
        if not self._allows(actor, asked).allowed:
            words = f"{actor.name} is not authorized to request tokens for this audience"
            raise forbid(admission, f'audience "{audience}" not found in pod spec volume, {words}')

    def _audiences(self, pod: Obj) -> Iterator[str]:
        for volume in (pod.get("spec") or {}).get("volumes") or ():
            for source in (volume.get("projected") or {}).get("sources") or ():
                if "serviceAccountToken" in source:
                    yield source["serviceAccountToken"].get("audience") or ""
            driver = self._reader.get("storage.k8s.io", "csidrivers", "", self._driver(pod["metadata"], volume))
            for one in ((driver or {}).get("spec") or {}).get("tokenRequests") or ():
                yield one.get("audience") or ""

    def _driver(self, metadata: Obj, volume: Obj) -> str:
        """The name of the CSI driver that mounts a volume of a pod; empty if none does."""
        claim_name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if "ephemeral" in volume:
            claim_name = f"{metadata['name']}-{volume['name']}"
        if not claim_name:
            return (volume.get("csi") or {}).get("driver") or ""
        claim = self._reader.get("", CLAIMS, metadata["namespace"], claim_name) or {}
        found = self._reader.get("", "persistentvolumes", "", (claim.get("spec") or {}).get("volumeName") or "")
        return (((found or {}).get("spec") or {}).get("csi") or {}).get("driver") or ""


def _owner_fault(owners: list[Obj], node: str) -> str:
    if len(owners) > 1:
        return "can only create pods with a single owner reference set to itself"
    owner = owners[0] if owners else {}
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
        return "can only create pods with an owner reference set to itself"
    if not owner.get("controller"):
        return "can only create pods with a controller owner reference set to itself"
    if owner.get("blockOwnerDeletion"):
        return "must not set blockOwnerDeletion on an owner reference"
    return ""


def object_reference(pod: Obj) -> str:
    """What of the API a pod refers to, in Kubernetes' words; empty for one that a node may create."""
    spec = pod.get("spec") or {}
    if spec.get("serviceAccountName"):
        return "serviceaccounts"
    bare = {**pod, "metadata": {**pod["metadata"], "annotations": {}}}
    plurals = {plural for plural, _ in references(bare)}
    for plural in (SECRETS, CONFIG_MAPS):
        if plural in plurals:
            return plural
    if spec.get("resourceClaims"):
        return RESOURCE_CLAIMS
    for volume in spec.get("volumes") or ():
        for kind, words in _VOLUMES_OF_OBJECTS.items():
            if kind in volume:
                return words
        if "persistentVolumeClaim" in volume:
            return CLAIMS
        for source in (volume.get("projected") or {}).get("sources") or ():
            for kind, words in _PROJECTED_OBJECTS.items():
                if kind in source:
                    return words
    return ""


def _pod_status(admission: AdmissionAttributes, node: str) -> None:
    old, new = admission.old or {}, admission.written
    if _node_name(old) != node:
        whose = "pods with spec.nodeName set to itself"
        raise forbid(admission, f'node "{node}" can only update pod status for {whose}')
    if (old["metadata"].get("labels") or {}) != (new["metadata"].get("labels") or {}):
        raise forbid(admission, f'node "{node}" cannot update labels through pod status')
    before, after = old.get("status") or {}, new.get("status") or {}
    if (before.get("resourceClaimStatuses") or []) != (after.get("resourceClaimStatuses") or []):
        raise forbid(admission, f'node "{node}" cannot update resource claim statues')
    if before.get("extendedResourceClaimStatus") != after.get("extendedResourceClaimStatus"):
        raise forbid(admission, f'node "{node}" cannot update extended resource claim status')


# -- what has the name of the node ------------------------------------------------------------------------------------


def _node(admission: AdmissionAttributes, node: str) -> None:
    name = _written_name(admission)
    if name != node:
        raise forbid(admission, f'node "{node}" is not allowed to modify node "{name}"')
    if admission.operation == "DELETE":
        return
    new, old = admission.written, admission.old
    source = (new.get("spec") or {}).get("configSource")
    if old is None:
        if source is not None:
            raise forbid(admission, f'node "{node}" is not allowed to create pods with a non-nil configSource')
        forbidden = forbidden_labels(new["metadata"].get("labels") or {}, {})
        if forbidden:
            listed = ", ".join(forbidden)
            raise forbid(admission, f'node "{node}" is not allowed to set the following labels: {listed}')
        return
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if source is not None and source != before.get("configSource"):
        raise forbid(admission, f'node "{node}" is not allowed to update configSource to a new non-nil configSource')
    if (spec.get("taints") or []) != (before.get("taints") or []):
        raise forbid(admission, f'node "{node}" is not allowed to modify taints')
    if (new["metadata"].get("ownerReferences") or []) != (old["metadata"].get("ownerReferences") or []):
        raise forbid(admission, f'node "{node}" is not allowed to modify ownerReferences')
    forbidden = forbidden_labels(new["metadata"].get("labels") or {}, old["metadata"].get("labels") or {})
    if forbidden:
        raise forbid(admission, f"is not allowed to modify labels: {', '.join(forbidden)}")


def forbidden_labels(new: dict[str, str], old: dict[str, str]) -> list[str]:
    """The labels that differ and that a node may not add, change or remove."""
    changed = {key for key in {**new, **old} if new.get(key) != old.get(key) or (key in new) != (key in old)}
    return sorted(key for key in changed if not _is_own_label(key))


def _is_own_label(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    domain = domain if slash else ""
    if _is_within(domain, _RESTRICTED_DOMAIN):
        return False
    if not (_is_within(domain, "kubernetes.io") or _is_within(domain, "k8s.io")):
        return True
    return key in _OWN_LABELS or any(_is_within(domain, one) for one in _OWN_DOMAINS)


def _is_within(domain: str, whole: str) -> bool:
    return domain == whole or domain.endswith(f".{whole}")


def _lease(admission: AdmissionAttributes, node: str) -> None:
    if admission.namespace != LEASES:
        raise forbid(admission, f'can only access leases in the "{LEASES}" system namespace')
    if _written_name(admission) != node:
        raise forbid(admission, "can only access node lease with the same name as the requesting node")


def _csi_node(admission: AdmissionAttributes, node: str) -> None:
    if _written_name(admission) != node:
        raise forbid(admission, "can only access CSINode with the same name as the requesting node")


def _slice(admission: AdmissionAttributes, node: str) -> None:
    verb, whole = {"CREATE": ("create", admission.obj), "DELETE": ("delete", admission.old)}.get(
        admission.operation, ("", None)
    )
    if verb and _node_name(whole) != node:
        raise forbid(admission, f"can only {verb} ResourceSlice with the same NodeName as the requesting node")


# -- claims and requests for certificates ----------------------------------------------------------------------------


def _claim(admission: AdmissionAttributes, node: str) -> None:
    if admission.call.subresource != "status":
        raise forbid(admission, "may only update PVC status")
    if admission.operation != "UPDATE":
        raise forbid(admission, f'unexpected operation "{admission.operation}"')
    if _beside_claim_status(admission.written) != _beside_claim_status(admission.old or {}):
        words = "is not allowed to update fields other than status.quantity and status.conditions"
        raise forbid(admission, f'node "{node}" {words}')


def _beside_claim_status(claim: Obj) -> Obj:
    metadata = {
        key: value for key, value in claim["metadata"].items() if key not in ("resourceVersion", "managedFields")
    }
    reported = {key: value for key, value in (claim.get("status") or {}).items() if key not in _CLAIM_STATUS}
    return {**claim, "metadata": metadata, "status": reported}


def _request(admission: AdmissionAttributes, node: str) -> None:
    if admission.operation != "CREATE":
        return
    spec = admission.written.get("spec") or {}
    if spec.get("signerName") not in _SIGNERS:
        return
    # Loaded when first needed: few clusters ever sign a request, all of them start.
    from cryptography import x509

    from shoal.api.subjects import common_name

    try:
        asked_for = common_name(x509.load_pem_x509_csr(base64.b64decode(spec.get("request") or "")).subject)
    except ValueError as fault:
        raise forbid(admission, f"unable to parse csr: {fault}") from fault
    if asked_for != f"{NODE_PREFIX}{node}":
        raise forbid(admission, f"can only create a node CSR with CN={NODE_PREFIX}{node}")


def _node_name(obj: Obj | None) -> str:
    return ((obj or {}).get("spec") or {}).get("nodeName") or ""


def _written_name(admission: AdmissionAttributes) -> str:
    """Of an object that is created, the name that it says."""
    if admission.operation == "CREATE":
        return str(admission.written["metadata"].get("name") or "")
    return admission.name
