"""What a node may read and write: the node authorizer and NodeRestriction, over the whole server."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from build.in_process import MERGE, InProcess, in_process
from shoal.embedded.apiserver.security.node_pods import references, volume_secrets
from shoal.embedded.apiserver.security.node_restriction import forbidden_labels, object_reference

Obj = dict[str, Any]
NS = "/api/v1/namespaces/default"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
UNRELATED = "no relationship found between node 'n1' and this object"


def node(name: str = "n1") -> dict[str, str]:
    return {"Impersonate-User": f"system:node:{name}", "Impersonate-Group": "system:nodes"}


def pod(name: str, on: str, **spec: Any) -> Obj:
    containers = spec.pop("containers", [{"name": "c", "image": "x"}])
    return {"metadata": {"name": name}, "spec": {"nodeName": on, "containers": containers, **spec}}


USES: Obj = {
    "containers": [
        {
            "name": "c",
            "image": "x",
            "envFrom": [{"secretRef": {"name": "env-from"}}, {"configMapRef": {"name": "cm-from"}}],
            "env": [
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": "env", "key": "k"}}},
                {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "cm-env", "key": "k"}}},
            ],
        }
    ],
    "imagePullSecrets": [{"name": "pull"}],
    "volumes": [
        {"name": "s", "secret": {"secretName": "volume"}},
        {"name": "c", "configMap": {"name": "cm-volume"}},
        {"name": "p", "projected": {"sources": [{"secret": {"name": "projected"}}, {"configMap": {"name": "cm-p"}}]}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ],
}


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[InProcess]:
    async with in_process(tmp_path, authorization="rbac") as opened:
        for name in ("n1", "n2"):
            await done(opened, "POST", "/api/v1/nodes", {"metadata": {"name": name}})
        for name in ("volume", "other"):
            await done(opened, "POST", f"{NS}/secrets", {"metadata": {"name": name}})
        await done(opened, "POST", f"{NS}/pods", pod("mine", "n1", volumes=[USES["volumes"][0]]))
        await done(opened, "POST", f"{NS}/pods", pod("theirs", "n2"))
        yield opened


async def done(door: InProcess, method: str, path: str, body: Any = b"", by: Obj | None = None, media: str = "") -> Obj:
    reply = await door.ask(method, path, body, media or "application/json", by or {})
    assert reply.code < 300, reply.raw
    found: Obj = reply.body
    return found


async def why(door: InProcess, method: str, path: str, body: Any = b"", media: str = "", by: str = "n1") -> str:
    reply = await door.ask(method, path, body, media or "application/json", node(by))
    assert reply.code == 403, (reply.code, reply.raw)
    message: str = reply.body["message"]
    return message


# -- reading ----------------------------------------------------------------------------------------------------------


async def test_a_node_reads_the_secrets_of_its_own_pods_and_no_others(door: InProcess) -> None:
    await done(door, "GET", f"{NS}/secrets/volume", by=node())
    await done(door, "GET", f"{NS}/secrets?fieldSelector=metadata.name=volume", by=node())
    assert await why(door, "GET", f"{NS}/secrets/other") == (
        'secrets "other" is forbidden: User "system:node:n1" cannot get resource "secrets" in API group "" in the '
        f'namespace "default": {UNRELATED}'
    )
    assert UNRELATED.replace("n1", "n2") in await why(door, "GET", f"{NS}/secrets/volume", by="n2")
    assert (await why(door, "GET", f"{NS}/secrets")).endswith(": No Object name found")
    assert (await why(door, "GET", "/api/v1/secrets")).endswith(": can only read namespaced object of this type")
    assert (await why(door, "DELETE", f"{NS}/secrets/volume")).endswith(": can only read resources of this type")


async def test_what_a_node_reads_follows_its_pods(door: InProcess) -> None:
    assert UNRELATED in await why(door, "GET", f"{NS}/secrets/other")
    await done(door, "POST", f"{NS}/pods", pod("late", "", imagePullSecrets=[{"name": "other"}]))
    assert UNRELATED in await why(door, "GET", f"{NS}/secrets/other")
    binding = {"metadata": {"name": "late"}, "target": {"kind": "Node", "name": "n1"}}
    await done(door, "POST", f"{NS}/pods/late/binding", binding)
    await done(door, "GET", f"{NS}/secrets/other", by=node())
    await done(door, "DELETE", f"{NS}/pods/late?gracePeriodSeconds=0")
    assert UNRELATED in await why(door, "GET", f"{NS}/secrets/other")


async def test_a_node_reads_the_volumes_behind_the_claims_of_its_pods(door: InProcess) -> None:
    spec: Obj = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "pv"}
    await done(door, "POST", f"{NS}/persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": spec})
    csi = {"driver": "d.example", "volumeHandle": "h", "nodeStageSecretRef": {"namespace": "default", "name": "other"}}
    claim = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"}
    volume = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "csi": csi, "claimRef": claim}
    await done(door, "POST", "/api/v1/persistentvolumes", {"metadata": {"name": "pv"}, "spec": volume})
    paths = ("/api/v1/persistentvolumes/pv", f"{NS}/persistentvolumeclaims/data", f"{NS}/secrets/other")
    for path in paths:
        assert UNRELATED in await why(door, "GET", path)
    await done(door, "POST", f"{NS}/pods", pod("claims", "n1", volumes=[USES["volumes"][3]]))
    for path in paths:
        await done(door, "GET", path, by=node())
    words = await why(door, "GET", f"{NS}/persistentvolumeclaims")
    assert words.endswith(": can only get individual resources of this type")


async def test_a_node_reads_itself_and_its_pods(door: InProcess) -> None:
    await done(door, "GET", "/api/v1/nodes/n1", by=node())
    await done(door, "GET", "/api/v1/nodes?fieldSelector=metadata.name=n1", by=node())
    assert "node 'n1' cannot read 'n2', only its own Node object" in await why(door, "GET", "/api/v1/nodes/n2")
    assert "node 'n1' cannot read all nodes, only its own Node object" in await why(door, "GET", "/api/v1/nodes")
    await done(door, "GET", f"{NS}/pods/mine", by=node())
    assert UNRELATED in await why(door, "GET", f"{NS}/pods/theirs")
    found = await done(door, "GET", "/api/v1/pods?fieldSelector=spec.nodeName=n1", by=node())
    assert [one["metadata"]["name"] for one in found["items"]] == ["mine"]
    for path in ("/api/v1/pods", "/api/v1/pods?fieldSelector=spec.nodeName=n2", "/api/v1/pods?fieldSelector=a"):
        assert "can only list/watch pods with spec.nodeName field selector" in await why(door, "GET", path)
    await done(door, "GET", "/api/v1/services", by=node())


async def test_who_names_no_node_is_refused(door: InProcess) -> None:
    assert 'unknown node for user "system:node:"' in await why(door, "GET", "/api/v1/services", by="")
    lonely = {"Impersonate-User": "bob", "Impersonate-Group": "system:nodes"}
    assert (await door.ask("GET", "/api/v1/services", headers=lonely)).code == 403


def test_every_reference_of_a_pod_counts_and_none_of_a_mirror_pod() -> None:
    status = {
        "resourceClaimStatuses": [{"name": "made", "resourceClaimName": "made-1"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "extended"},
    }
    claims = [{"name": "a", "resourceClaimName": "own"}, {"name": "made", "resourceClaimTemplateName": "t"}]
    obj = pod("p", "n1", serviceAccountName="sa", resourceClaims=claims, **USES) | {"status": status}
    assert references(obj) == {
        *(("secrets", one) for one in ("env-from", "env", "pull", "volume", "projected")),
        *(("configmaps", one) for one in ("cm-from", "cm-env", "cm-volume", "cm-p")),
        *(("persistentvolumeclaims", one) for one in ("data", "p-scratch")),
        *(("resourceclaims", one) for one in ("own", "made-1", "extended")),
        ("serviceaccounts", "sa"),
    }
    obj["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    assert references(obj) == frozenset()


def test_of_a_volume_only_the_secrets_that_a_kubelet_reads_count() -> None:
    csi = {key: {"namespace": "a", "name": key} for key in ("nodeStageSecretRef", "controllerPublishSecretRef")}
    assert volume_secrets({"spec": {"csi": csi}}) == {("a", "nodeStageSecretRef")}
    rbd = {"claimRef": {"namespace": "c"}, "rbd": {"secretRef": {"name": "s"}}, "azureFile": {"secretName": "z"}}
    assert volume_secrets({"spec": rbd}) == {("c", "s"), ("c", "z")}


# -- writing ----------------------------------------------------------------------------------------------------------


async def test_a_node_writes_its_own_node_only_and_neither_taints_nor_labels_that_draw_work(door: InProcess) -> None:
    path = "/api/v1/nodes/n1"
    await done(door, "PATCH", path, {"metadata": {"labels": {"example.com/a": "b"}}}, node(), MERGE)
    await done(door, "PATCH", f"{path}/status", {"status": {"phase": "Running"}}, node(), MERGE)
    words = await why(door, "PATCH", "/api/v1/nodes/n2", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    assert words == 'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"'
    taint = {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    assert 'node "n1" is not allowed to modify taints' in await why(door, "PATCH", path, taint, MERGE)
    labels = {"metadata": {"labels": {"node-restriction.kubernetes.io/x": "y", "foo.k8s.io/x": "y"}}}
    words = await why(door, "PATCH", path, labels, MERGE)
    assert words.endswith("is not allowed to modify labels: foo.k8s.io/x, node-restriction.kubernetes.io/x")
    other = {"metadata": {"name": "n3"}}
    assert 'node "n1" is not allowed to modify node "n3"' in await why(door, "POST", "/api/v1/nodes", other)
    await done(door, "POST", "/api/v1/nodes", other, node("n3"))
    assert "cannot delete resource" in await why(door, "DELETE", path)


@pytest.mark.parametrize(
    ("key", "is_free"),
    [
        ("example.com/x", True),
        ("plain", True),
        ("kubernetes.io/hostname", True),
        ("topology.kubernetes.io/zone", True),
        ("node.kubernetes.io/anything", True),
        ("a.kubelet.kubernetes.io/x", True),
        ("kubernetes.io/other", False),
        ("node-role.kubernetes.io/control-plane", False),
        ("node-restriction.kubernetes.io/x", False),
        ("a.node-restriction.kubernetes.io/x", False),
        ("k8s.io/x", False),
    ],
)
def test_labels_of_kubernetes_own_domains_are_free_only_where_kubelets_need_them(key: str, is_free: bool) -> None:
    assert forbidden_labels({key: "v"}, {}) == ([] if is_free else [key])
    assert forbidden_labels({}, {key: "v"}) == ([] if is_free else [key])
    assert forbidden_labels({key: "v"}, {key: "v"}) == []


async def test_a_node_writes_the_status_of_its_own_pods_ends_and_evicts_them(door: InProcess) -> None:
    status = {"status": {"phase": "Running"}}
    await done(door, "PATCH", f"{NS}/pods/mine/status", status, node(), MERGE)
    words = await why(door, "PATCH", f"{NS}/pods/theirs/status", status, MERGE)
    assert words.endswith('node "n1" can only update pod status for pods with spec.nodeName set to itself')
    labels = {"metadata": {"labels": {"a": "b"}}}
    words = await why(door, "PATCH", f"{NS}/pods/mine/status", labels, MERGE)
    assert words.endswith('node "n1" cannot update labels through pod status')
    assert "cannot patch" in await why(door, "PATCH", f"{NS}/pods/mine", labels, MERGE)
    evicted = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "theirs"}}
    words = await why(door, "POST", f"{NS}/pods/theirs/eviction", evicted)
    assert words.endswith("node n1 can only evict pods with spec.nodeName set to itself")
    words = await why(door, "DELETE", f"{NS}/pods/theirs")
    assert words.endswith('node "n1" can only delete pods with spec.nodeName set to itself')
    evicted["metadata"] = {"name": "mine"}
    await done(door, "POST", f"{NS}/pods/mine/eviction", evicted, node())


async def test_a_node_creates_mirror_pods_of_its_own_that_refer_to_nothing(door: InProcess) -> None:
    uid = (await done(door, "GET", "/api/v1/nodes/n1"))["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": True}
    metadata = {"name": "m", "annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": [owner]}
    good = pod("m", "n1") | {"metadata": metadata}

    async def refused(change: Obj) -> str:
        return (await why(door, "POST", f"{NS}/pods", {**good, **change})).partition("is forbidden: ")[2]

    assert (await refused({"metadata": {"name": "m"}})).startswith('pod does not have "kubernetes.io/config.mirror"')
    assert "spec.nodeName set to itself" in await refused({"spec": pod("m", "n2")["spec"]})
    assert "with an owner reference" in await refused({"metadata": {**metadata, "ownerReferences": []}})
    plain = {**owner, "controller": False}
    assert "a controller owner reference" in await refused({"metadata": {**metadata, "ownerReferences": [plain]}})
    wrong = {**owner, "uid": "other"}
    assert "UID mismatch" in await refused({"metadata": {**metadata, "ownerReferences": [wrong]}})
    spec = {**good["spec"], "volumes": [{"name": "s", "secret": {"secretName": "other"}}]}
    assert await refused({"spec": spec}) == "a mirror pod may not reference secrets"
    await done(door, "POST", f"{NS}/pods", good, node())
    assert UNRELATED in await why(door, "GET", f"{NS}/secrets/other")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"serviceAccountName": "a"}, "serviceaccounts"),
        ({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, "secrets"),
        ({"volumes": [{"name": "v", "configMap": {"name": "s"}}]}, "configmaps"),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "s"}}]}, "persistentvolumeclaims"),
        ({"volumes": [{"name": "v", "csi": {"driver": "d"}}]}, "csidrivers (via CSI volumes)"),
        ({"resourceClaims": [{"name": "a"}]}, "resourceclaims"),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
            "serviceaccounts (via projected volumes)",
        ),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}, {"name": "e", "emptyDir": {}}]}, ""),
    ],
)
def test_what_a_mirror_pod_may_not_refer_to(spec: Obj, words: str) -> None:
    assert object_reference({"metadata": {"name": "p"}, "spec": spec}) == words


async def test_a_node_keeps_its_own_lease_csi_node_and_slices(door: InProcess) -> None:
    lease = {"metadata": {"name": "n1"}, "spec": {"holderIdentity": "n1"}}
    await done(door, "POST", LEASES, lease, node())
    assert "same name as the requesting node" in await why(door, "POST", LEASES, {"metadata": {"name": "n2"}})
    assert "same name as the requesting node" in await why(door, "PATCH", f"{LEASES}/n2", {}, MERGE)
    elsewhere = LEASES.replace("kube-node-lease", "kube-system")
    assert 'leases in the "kube-node-lease" system namespace' in await why(door, "POST", elsewhere, lease)
    csi = "/apis/storage.k8s.io/v1/csinodes"
    await done(door, "POST", csi, {"metadata": {"name": "n1"}, "spec": {"drivers": []}}, node())
    other = {"metadata": {"name": "n2"}, "spec": {"drivers": []}}
    assert "same name as the requesting node" in await why(door, "POST", csi, other)
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    made = {"metadata": {"name": "s1"}, "spec": {"driver": "d.example", "pool": pool, "nodeName": "n1"}}
    await done(door, "POST", SLICES, made, node())
    await done(door, "GET", f"{SLICES}/s1", by=node())
    await done(door, "GET", f"{SLICES}?fieldSelector=spec.nodeName=n1", by=node())
    assert UNRELATED.replace("n1", "n2") in await why(door, "DELETE", f"{SLICES}/s1", by="n2")
    assert "with nodeName field selector" in await why(door, "DELETE", SLICES)
    assert "the same NodeName as the requesting node" in await why(door, "POST", SLICES, made, by="n2")


async def test_a_node_gets_tokens_for_its_own_pods_only(door: InProcess) -> None:
    uid = {name: (await done(door, "GET", f"{NS}/pods/{name}"))["metadata"]["uid"] for name in ("mine", "theirs")}
    path = f"{NS}/serviceaccounts/default/token"

    def asking(name: str, **spec: Any) -> Obj:
        bound = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid[name]}
        return {"spec": {"boundObjectRef": bound, **spec}}

    assert (await done(door, "POST", path, asking("mine"), node()))["status"]["token"]
    assert "node requested token not bound to a pod" in await why(door, "POST", path, {"spec": {}})
    words = await why(door, "POST", path, asking("theirs"))
    assert words.endswith("node requested token bound to a pod scheduled on a different node")
    words = await why(door, "POST", path, asking("mine", audiences=["vault"]))
    assert words.endswith(
        'audience "vault" not found in pod spec volume, '
        "system:node:n1 is not authorized to request tokens for this audience"
    )
    await done(door, "POST", f"{NS}/serviceaccounts", {"metadata": {"name": "strong"}})
    assert UNRELATED in await why(door, "POST", f"{NS}/serviceaccounts/strong/token", asking("mine"))


def signing_request(common: str) -> Obj:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes")]
    subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, common)])
    made = x509.CertificateSigningRequestBuilder().subject_name(subject)
    pem = made.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(Encoding.PEM)
    spec = {"request": base64.b64encode(pem).decode(), "signerName": "kubernetes.io/kube-apiserver-client-kubelet"}
    return {"metadata": {"generateName": "ask-"}, "spec": spec | {"usages": ["client auth", "digital signature"]}}


async def test_a_node_asks_for_certificates_in_its_own_name(door: InProcess) -> None:
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    await done(door, "POST", path, signing_request("system:node:n1"), node())
    words = await why(door, "POST", path, signing_request("system:node:n2"))
    assert words.endswith("can only create a node CSR with CN=system:node:n1")
