"""Namespaces, nodes, storage and ingresses on their way in."""

from __future__ import annotations

import base64

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from build.cluster_reader import FakeReader, Obj, creating, deleting, named, pod, updating, world
from shoal.embedded.apiserver.admission.chain import builtin_plugins
from shoal.embedded.apiserver.admission.service_account import suffixes
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.status import ApiError


def admitted(reader: FakeReader, write: AdmissionAttributes) -> Obj:
    plugins = builtin_plugins(reader)
    plugins.mutate(write)
    plugins.validate(write)
    return write.obj or {}


def refusal(reader: FakeReader, write: AdmissionAttributes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        admitted(reader, write)
    return caught.value


def test_nothing_is_created_in_a_namespace_that_is_not_there() -> None:
    found = refusal(world(), creating(named("ConfigMap", "a", "gone")))
    assert (found.code, found.reason, found.message) == (404, "NotFound", 'namespaces "gone" not found')
    assert found.details == {"name": "gone", "kind": "namespaces"}


def test_nothing_is_created_in_a_namespace_on_its_way_out_but_updates_pass() -> None:
    reader = world(named("Namespace", "ml", status={"phase": "Terminating"}))
    found = refusal(reader, creating(named("ConfigMap", "a")))
    assert found.code == 403
    assert found.message == (
        'configmaps "a" is forbidden: unable to create new content in namespace ml because it is being terminated'
    )
    assert found.details is not None
    assert found.details["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace ml is being terminated",
            "field": "metadata.namespace",
        }
    ]
    admitted(reader, updating(named("ConfigMap", "a"), named("ConfigMap", "a")))


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_the_first_namespaces_stay(name: str) -> None:
    found = refusal(world(), deleting(named("Namespace", name)))
    assert found.message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


def test_other_namespaces_go() -> None:
    going = deleting(named("Namespace", "ml"))
    admitted(world(), going)
    assert going.call.warnings == []
    # Only the name decides: the same plugins refuse the same deletion of one of the first.
    assert refusal(world(), deleting(named("Namespace", "default"))).code == 403


def test_a_new_node_takes_no_pods_yet() -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert admitted(world(), creating(named("Node", "n1")))["spec"]["taints"] == [taint]
    tainted = named("Node", "n1", spec={"taints": [taint]})
    assert admitted(world(), creating(tainted))["spec"]["taints"] == [taint]


def storage_class(name: str, born: str) -> Obj:
    made = named("StorageClass", name)
    made["metadata"] |= {
        "creationTimestamp": born,
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    }
    return made


def test_a_claim_without_a_class_gets_the_newest_default_one() -> None:
    reader = world(storage_class("old", "2026-01-01T00:00:00Z"), storage_class("new", "2026-02-01T00:00:00Z"))
    claim = named("PersistentVolumeClaim", "data", spec={})
    assert admitted(reader, creating(claim))["spec"]["storageClassName"] == "new"


def test_a_claim_that_wants_no_class_gets_none() -> None:
    reader = world(storage_class("fast", "2026-01-01T00:00:00Z"))
    claim = named("PersistentVolumeClaim", "data", spec={"storageClassName": ""})
    assert admitted(reader, creating(claim))["spec"]["storageClassName"] == ""
    old_style = named("PersistentVolumeClaim", "data", spec={})
    old_style["metadata"]["annotations"] = {"volume.beta.kubernetes.io/storage-class": "slow"}
    assert "storageClassName" not in admitted(reader, creating(old_style))["spec"]


def test_a_default_that_changed_is_seen_at_once() -> None:
    reader = world(storage_class("fast", "2026-01-01T00:00:00Z"))
    plugins = builtin_plugins(reader)
    for wanted in ("fast", None):
        write = creating(named("PersistentVolumeClaim", "data", spec={}))
        plugins.mutate(write)
        assert (write.obj or {})["spec"].get("storageClassName") == wanted
        if wanted:
            reader.drop(storage_class("fast", ""))


def test_an_ingress_without_a_class_gets_the_default_one() -> None:
    made = named("IngressClass", "nginx")
    made["metadata"]["annotations"] = {"ingressclass.kubernetes.io/is-default-class": "true"}
    assert admitted(world(made), creating(named("Ingress", "web")))["spec"]["ingressClassName"] == "nginx"
    assert "ingressClassName" not in admitted(world(), creating(named("Ingress", "web")))["spec"]


@pytest.mark.parametrize(
    ("kind", "finalizer"),
    [
        ("PersistentVolumeClaim", "kubernetes.io/pvc-protection"),
        ("PersistentVolume", "kubernetes.io/pv-protection"),
    ],
)
def test_storage_in_use_is_protected_from_birth(kind: str, finalizer: str) -> None:
    assert admitted(world(), creating(named(kind, "data", spec={})))["metadata"]["finalizers"] == [finalizer]


def claim_of(size: str, phase: str = "Bound") -> Obj:
    spec = {"storageClassName": "fast", "resources": {"requests": {"storage": size}}}
    return named("PersistentVolumeClaim", "data", spec=spec, status={"phase": phase})


def test_a_claim_grows_only_when_bound_and_of_a_class_that_lets_it() -> None:
    growing = world(named("StorageClass", "fast", allowVolumeExpansion=True))
    admitted(growing, updating(claim_of("1Gi"), claim_of("2Gi")))
    admitted(world(), updating(claim_of("1Gi"), claim_of("1024Mi")))
    unbound = refusal(growing, updating(claim_of("1Gi", "Pending"), claim_of("2Gi")))
    assert unbound.message == (
        'persistentvolumeclaims "data" is forbidden: Only bound persistent volume claims can be expanded'
    )
    fixed = refusal(world(named("StorageClass", "fast")), updating(claim_of("1Gi"), claim_of("2Gi")))
    assert fixed.message == (
        'persistentvolumeclaims "data" is forbidden: only dynamically provisioned pvc can be resized and the '
        "storageclass that provisions the pvc must support resize"
    )


ADMIN = {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu", "adminAccess": True}}]}}


@pytest.mark.parametrize(
    "made",
    [named("ResourceClaim", "c", spec=ADMIN), named("ResourceClaimTemplate", "c", spec={"spec": ADMIN})],
    ids=["claim", "template"],
)
def test_admin_access_to_devices_needs_a_namespace_that_allows_it(made: Obj) -> None:
    found = refusal(world(), creating(made))
    assert found.code == 422
    assert found.message == (
        f'{made["kind"]}.resource.k8s.io "c" is invalid: spec.devices.requests[0].adminAccess: Forbidden: admin access '
        "to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"
    )
    admitted(world(labels={"resource.kubernetes.io/admin-access": "true"}), creating(made))


def signing_request(group: str, signer: str = "kubernetes.io/kube-apiserver-client") -> Obj:
    subject = x509.Name([x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, group)])
    key = ec.generate_private_key(ec.SECP256R1())
    pem = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    text = base64.b64encode(pem.public_bytes(serialization.Encoding.PEM)).decode()
    return named("CertificateSigningRequest", "kim", spec={"signerName": signer, "request": text})


def test_nobody_signs_themselves_into_the_masters() -> None:
    assert refusal(world(), creating(signing_request("system:masters"))).message == (
        'certificatesigningrequests.certificates.k8s.io "kim" is forbidden: use of kubernetes.io/kube-apiserver-client '
        "signer with system:masters group is not allowed"
    )
    admitted(world(), creating(signing_request("developers")))
    admitted(world(), creating(signing_request("system:masters", "example.com/other")))
    broken = named("CertificateSigningRequest", "kim", spec=signing_request("a")["spec"] | {"request": "bm8="})
    assert "is forbidden: failed to parse CSR: " in refusal(world(), creating(broken)).message


def test_a_request_says_who_sent_it_and_nobody_else() -> None:
    write = creating(signing_request("developers"))
    write.written["spec"] |= {"username": "somebody-else", "groups": ["system:masters"], "extra": {"a": ["b"]}}
    spec = admitted(world(), write)["spec"]
    assert spec["username"] == write.call.actor.name
    assert spec.get("groups", []) == list(write.call.actor.groups)
    assert "extra" not in spec


def test_suffixes_differ_for_a_long_time_and_start_the_same() -> None:
    first, again = suffixes(), suffixes()
    made = [first() for _ in range(5000)]
    assert len(set(made)) == 5000
    assert [again() for _ in range(3)] == made[:3]
    assert all(len(one) == 5 and set(one) <= set("bcdfghjklmnpqrstvwxz2456789") for one in made)


def test_a_pod_costs_no_scan_of_what_did_not_change() -> None:
    reader = world()
    plugins = builtin_plugins(reader)
    for _ in range(2):
        write = creating(pod())
        plugins.mutate(write)
        plugins.validate(write)
    scans = reader.scans
    plugins.mutate(creating(pod()))
    assert reader.scans == scans


def test_a_claim_does_not_grow_into_another_class() -> None:
    reader = world(named("StorageClass", "fast", allowVolumeExpansion=True))
    moved = claim_of("2Gi")
    moved["spec"]["storageClassName"] = "other"
    assert "must support resize" in refusal(reader, updating(claim_of("1Gi"), moved)).message
