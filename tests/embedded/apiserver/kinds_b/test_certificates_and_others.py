from __future__ import annotations

import base64
import copy
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from build.kind_objects import complaints, created, texts
from shoal.embedded.apiserver.kinds.certificates.requests import ApprovalStrategy
from shoal.embedded.apiserver.kinds.table import STRATEGIES

Obj = dict[str, Any]
GROUP = "certificates.k8s.io"
FLOWS = "flowcontrol.apiserver.k8s.io"


def signed_request() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bob")])
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


def asking(**spec: Any) -> Obj:
    whole = {"request": signed_request(), "signerName": "example.com/mine", "usages": ["client auth"], **spec}
    return {"metadata": {"name": "bob"}, "spec": whole}


def test_a_request_is_signed_and_for_somebody_who_signs() -> None:
    assert complaints(GROUP, "certificatesigningrequests", asking()) == []
    (text,) = complaints(GROUP, "certificatesigningrequests", asking(request="eA=="))
    assert text == 'spec.request: Invalid value: "eA==": PEM block type must be CERTIFICATE REQUEST'
    assert complaints(GROUP, "certificatesigningrequests", asking(usages=[], signerName="", expirationSeconds=5)) == [
        "spec.usages: Required value",
        "spec.signerName: Required value",
        "spec.expirationSeconds: Invalid value: 5: may not specify a duration less than 600 seconds (10 minutes)",
    ]


def test_a_request_is_approved_or_denied_by_its_own_door() -> None:
    door, strategy = ApprovalStrategy(), STRATEGIES[GROUP, "certificatesigningrequests"]
    old = created(GROUP, "certificatesigningrequests", asking())
    new = copy.deepcopy(old)
    new["spec"] = {}
    new["status"]["conditions"] = [{"type": "Approved", "status": "True"}]
    door.prepare_update(new, old)
    assert new["spec"] == old["spec"]
    assert door.validate_update(new, old) == []
    assert texts(strategy.validate_status(new, old)) == [
        'status.conditions: Forbidden: updates may not add a condition of type "Approved"'
    ]
    both = copy.deepcopy(new)
    both["status"]["conditions"].append({"type": "Denied", "status": "True"})
    assert texts(door.validate_update(both, old)) == [
        'status.conditions[1].type: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive'
    ]
    assert texts(door.validate_update(old, new)) == [
        'status.conditions: Forbidden: updates may not remove a condition of type "Approved"'
    ]


def test_an_api_service_is_named_by_what_it_serves() -> None:
    spec = {"group": "m.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
    assert complaints("apiregistration.k8s.io", "apiservices", {"metadata": {"name": "x"}, "spec": spec}) == [
        'metadata.name: Invalid value: "x": must be `spec.version+"."+spec.group`: "v1.m.example.com"'
    ]


def test_a_lease_lasts_a_while() -> None:
    lease = {"metadata": {"name": "l", "namespace": "default"}, "spec": {"leaseDurationSeconds": 0}}
    assert complaints("coordination.k8s.io", "leases", lease) == [
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"
    ]
    assert STRATEGIES["coordination.k8s.io", "leases"].creates_on_update


def test_a_flow_schema_is_about_somebody_and_something() -> None:
    spec = {"priorityLevelConfiguration": {"name": "workload-low"}, "rules": [{}], "matchingPrecedence": 1}
    assert complaints(FLOWS, "flowschemas", {"metadata": {"name": "f"}, "spec": spec}) == [
        "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
        "spec.rules[0].subjects: Required value: subjects must contain at least one value",
        "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
    ]


def test_a_hand_of_queues_fits_a_number() -> None:
    def queuing(queues: int, hand: int) -> list[str]:
        held = {"queues": queues, "handSize": hand, "queueLengthLimit": 1}
        spec = {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": held}}}
        return complaints(FLOWS, "prioritylevelconfigurations", {"metadata": {"name": "p"}, "spec": spec})

    assert queuing(128, 6) == []
    path = "spec.limited.limitResponse.queuing.handSize"
    assert queuing(4, 6) == [f"{path}: Invalid value: 6: should not be greater than queues (4)"]
    (text,) = queuing(4096, 10)
    assert text == (
        f"{path}: Invalid value: 10: required entropy bits of deckSize 4096 and handSize 10 should not be greater "
        "than 60"
    )


def test_a_runtime_keeps_its_handler() -> None:
    old = created("node.k8s.io", "runtimeclasses", {"metadata": {"name": "kata"}, "handler": "kata"})
    assert texts(STRATEGIES["node.k8s.io", "runtimeclasses"].validate_update(old | {"handler": "other"}, old)) == [
        'handler: Invalid value: "other": field is immutable'
    ]
