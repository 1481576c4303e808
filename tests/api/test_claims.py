"""What is asked for in devices, class by class and request by request, and what is refused of it."""

from typing import Any

import pytest

from shoal.api.claims import ResourceClaim, ResourceClaimTemplate
from shoal.api.decode import read
from shoal.api.device_classes import DeviceClass
from shoal.api.device_names import full_name, full_name_fault, pool_fault, qualified_name_fault
from shoal.api.device_taints import DeviceTaint, DeviceToleration, is_kept_away
from shoal.units.errors import UserError, Where
from shoal.units.quantity import Quantity


def text(kind: str, body: str, version: str = "v1") -> str:
    return f"apiVersion: resource.k8s.io/{version}\nkind: {kind}\nmetadata: {{name: c}}\n{body}\n"


def only(kind: str, body: str, version: str = "v1") -> Any:
    (document,) = read(text(kind, body, version), "c.yaml")
    return document.value


def claim(devices: str, version: str = "v1") -> ResourceClaim:
    value = only("ResourceClaim", f"spec: {{devices: {devices}}}", version)
    assert isinstance(value, ResourceClaim)
    return value


def test_a_device_class_is_read() -> None:
    device_class = only(
        "DeviceClass",
        "spec: {selectors: [{cel: {expression: 'device.driver == \"gpu.nvidia.com\"'}}],"
        " extendedResourceName: nvidia.com/gpu,"
        " config: [{opaque: {driver: gpu.nvidia.com, parameters: {kind: GpuConfig, sharing: {strategy: MPS}}}}]}",
    )
    assert isinstance(device_class, DeviceClass)
    assert device_class.metadata.namespace == ""
    assert device_class.spec.selectors[0].cel.expression == 'device.driver == "gpu.nvidia.com"'
    assert device_class.spec.extended_resource_name == "nvidia.com/gpu"
    assert device_class.spec.config[0].opaque.parameters["sharing"] == {"strategy": "MPS"}


WORDY = "{requests: [{name: gpu, exactly: {deviceClassName: g, count: 2, adminAccess: true}}]}"
TERSE = "{requests: [{name: gpu, deviceClassName: g, count: 2, adminAccess: true}]}"


@pytest.mark.parametrize("version", ["v1", "v1beta2"])
def test_both_spellings_of_a_request_come_to_one_value(version: str) -> None:
    (wordy,) = claim(WORDY, version).spec.devices.requests
    (terse,) = claim(TERSE, "v1beta1").spec.devices.requests
    exact = wordy.exact()
    assert exact is not None
    assert exact == terse.exact()
    assert (exact.device_class_name, exact.wanted(), exact.admin_access) == ("g", 2, True)


WANTED = {
    "one unless said otherwise": ("deviceClassName: g", 1),
    "one where the count is left at zero": ("deviceClassName: g, count: 0", 1),
    "as many as said": ("deviceClassName: g, allocationMode: ExactCount, count: 8", 8),
    "all that match": ("deviceClassName: g, allocationMode: All", None),
    "one where the mode is left empty": ("deviceClassName: g, allocationMode: ''", 1),
}


@pytest.mark.parametrize(("fields", "want"), WANTED.values(), ids=WANTED)
def test_how_many_devices_a_request_wants(fields: str, want: int | None) -> None:
    exact = claim(f"{{requests: [{{name: gpu, exactly: {{{fields}}}}}]}}").spec.devices.requests[0].exact()
    assert exact is not None
    assert exact.wanted() == want


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_alternatives_have_names_of_their_own(version: str) -> None:
    devices = (
        "{requests: [{name: gpu, firstAvailable: [{name: big, deviceClassName: h200},"
        " {name: small, deviceClassName: a100, count: 2, capacity: {requests: {memory: 40Gi}}}]}],"
        " constraints: [{requests: [gpu/small], matchAttribute: resource.kubernetes.io/pcieRoot},"
        " {distinctAttribute: gpu.nvidia.com/uuid}],"
        " config: [{requests: [gpu], opaque: {driver: gpu.nvidia.com, parameters: {}}}]}"
    )
    asked = claim(devices, version).spec.devices
    (request,) = asked.requests
    assert request.exact() is None
    assert request.names() == ("gpu", "gpu/big", "gpu/small")
    capacity = request.first_available[1].capacity
    assert capacity is not None
    assert capacity.requests == {"memory": Quantity.parse("40Gi")}
    assert [one.match_attribute for one in asked.constraints] == ["resource.kubernetes.io/pcieRoot", ""]


def test_a_template_carries_the_request_and_the_labels_of_its_claims() -> None:
    template = only("ResourceClaimTemplate", f"spec: {{metadata: {{labels: {{team: a}}}}, spec: {{devices: {WORDY}}}}}")
    assert isinstance(template, ResourceClaimTemplate)
    assert template.spec.metadata.labels == {"team": "a"}
    assert template.spec.spec.devices.names() == {"gpu"}


RESULT = "request: gpu, driver: gpu.nvidia.com, pool: n1, device: gpu-0"


def status(allocation: str, rest: str = "") -> str:
    return f"spec: {{devices: {WORDY}}}\nstatus: {{allocation: {allocation}{rest}}}"


def test_an_allocation_says_which_devices_for_whom_and_where() -> None:
    allocated = only(
        "ResourceClaim",
        status(
            f"{{devices: {{results: [{{{RESULT}, shareID: s, consumedCapacity: {{memory: 10Gi}}}}]}}, nodeSelector:"
            " {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}}",
            ", reservedFor: [{resource: pods, name: p, uid: u}]",
        ),
    )
    assert allocated.is_allocated()
    (result,) = allocated.status.allocation.devices.results
    assert result.key == ("gpu.nvidia.com", "n1", "gpu-0")
    assert (result.share_id, result.consumed_capacity) == ("s", {"memory": Quantity.parse("10Gi")})
    assert allocated.status.allocation.node_selector.matches("n1", {})
    assert allocated.status.reserved_for[0].name == "p"
    assert not claim(WORDY).is_allocated()


def exactly(fields: str) -> str:
    return f"{{requests: [{{name: a, exactly: {{deviceClassName: g, {fields}}}}}]}}"


def with_constraint(fields: str) -> str:
    return f"{{requests: [{{name: a, exactly: {{deviceClassName: g}}}}], constraints: [{{{fields}}}]}}"


LONG = "x" * (10 * 2**10 + 1)
EITHER = "spec.devices.requests[0]: exactly one of exactly and firstAvailable is required"
BAD_CLAIMS = {
    "too many requests": (
        "{requests: [" + ", ".join(f"{{name: r{n}, exactly: {{deviceClassName: g}}}}" for n in range(33)) + "]}",
        "spec.devices.requests: must have at most 32 items, got 33",
    ),
    "a request without a name": ("{requests: [{}]}", "spec.devices.requests[0].name: is required"),
    "a request with a slash": (
        "{requests: [{name: a/b, exactly: {deviceClassName: g}}]}",
        (
            'spec.devices.requests[0].name: "a/b" is not a request name: '
            "must be lowercase letters, digits or '-', and start and end with a letter or digit"
        ),
    ),
    "two requests of one name": (
        "{requests: [{name: a, exactly: {deviceClassName: g}}, {name: a, exactly: {deviceClassName: g}}]}",
        'spec.devices.requests[1].name: "a" is named twice',
    ),
    "a request for nothing": ("{requests: [{name: a}]}", EITHER),
    "a request in the spelling of v1beta1": (
        "{requests: [{name: a, deviceClassName: g}]}",
        f"{EITHER}; put deviceClassName and the fields beside it under exactly",
    ),
    "a request of both kinds": (
        "{requests: [{name: a, exactly: {deviceClassName: g}, firstAvailable: [{name: x, deviceClassName: g}]}]}",
        EITHER,
    ),
    "no class": (
        "{requests: [{name: a, exactly: {}}]}",
        "spec.devices.requests[0].exactly.deviceClassName: is required",
    ),
    "a class that nothing can be called": (
        "{requests: [{name: a, exactly: {deviceClassName: GPU}}]}",
        (
            'spec.devices.requests[0].exactly.deviceClassName: "GPU" is not a device class: '
            "a name is lowercase letters, digits, '-' and '.', starting and ending with a letter or digit"
        ),
    ),
    "an unknown mode": (
        exactly("allocationMode: Some"),
        (
            'spec.devices.requests[0].exactly.allocationMode: unsupported value "Some"; '
            "supported values are All, ExactCount"
        ),
    ),
    "all, counted": (
        exactly("allocationMode: All, count: 2"),
        "spec.devices.requests[0].exactly.count: must not be specified when allocationMode is All",
    ),
    "fewer than no devices": (
        exactly("count: -1"),
        "spec.devices.requests[0].exactly.count: must be greater than zero, got -1",
    ),
    "an empty expression": (
        exactly("selectors: [{cel: {expression: ' '}}]"),
        "spec.devices.requests[0].exactly.selectors[0].cel.expression: is required",
    ),
    "a selector without an expression": (
        exactly("selectors: [{}]"),
        "spec.devices.requests[0].exactly.selectors[0].cel: is required",
    ),
    "an endless expression": (
        exactly(f"selectors: [{{cel: {{expression: {LONG}}}}}]"),
        "spec.devices.requests[0].exactly.selectors[0].cel.expression: must be no more than 10240 bytes",
    ),
    "too many selectors": (
        exactly("selectors: [" + ", ".join(["{cel: {expression: 'true'}}"] * 33) + "]"),
        "spec.devices.requests[0].exactly.selectors: must have at most 32 items, got 33",
    ),
    "a toleration of nothing": (
        exactly("tolerations: [{operator: Equal}]"),
        "spec.devices.requests[0].exactly.tolerations[0].operator: operator must be Exists when key is empty",
    ),
    "too many tolerations": (
        exactly("tolerations: [" + ", ".join(["{operator: Exists}"] * 17) + "]"),
        "spec.devices.requests[0].exactly.tolerations: must have at most 16 items, got 17",
    ),
    "a capacity below zero": (
        exactly("capacity: {requests: {memory: -1}}"),
        (
            "spec.devices.requests[0].exactly.capacity.requests.memory: "
            'Invalid value: "-1": must be greater than or equal to 0'
        ),
    ),
    "a capacity that nothing can be called": (
        exactly("capacity: {requests: {a-b: 1}}"),
        (
            'spec.devices.requests[0].exactly.capacity.requests: "a-b" is not a capacity: '
            "the identifier must be letters, digits or '_', and not start with a digit"
        ),
    ),
    "too many alternatives": (
        "{requests: [{name: a, firstAvailable: ["
        + ", ".join(f"{{name: x{n}, deviceClassName: g}}" for n in range(9))
        + "]}]}",
        "spec.devices.requests[0].firstAvailable: must have at most 8 items, got 9",
    ),
    "two alternatives of one name": (
        "{requests: [{name: a, firstAvailable: [{name: x, deviceClassName: g}, {name: x, deviceClassName: h}]}]}",
        'spec.devices.requests[0].firstAvailable[1].name: "x" is named twice',
    ),
    "an alternative without a class": (
        "{requests: [{name: a, firstAvailable: [{name: x}]}]}",
        "spec.devices.requests[0].firstAvailable[0].deviceClassName: is required",
    ),
    "a constraint on an unknown request": (
        with_constraint("requests: [b], matchAttribute: x.com/a"),
        'spec.devices.constraints[0].requests[0]: "b" is not one of the claim\'s requests',
    ),
    "a constraint that names a request twice": (
        with_constraint("requests: [a, a], matchAttribute: x.com/a"),
        'spec.devices.constraints[0].requests[1]: "a" is named twice',
    ),
    "a constraint of no kind": (
        with_constraint("requests: [a]"),
        "spec.devices.constraints[0]: exactly one of matchAttribute and distinctAttribute is required",
    ),
    "a constraint of both kinds": (
        with_constraint("matchAttribute: x.com/a, distinctAttribute: x.com/a"),
        "spec.devices.constraints[0]: exactly one of matchAttribute and distinctAttribute is required",
    ),
    "an attribute of no domain": (
        with_constraint("distinctAttribute: model"),
        (
            'spec.devices.constraints[0].distinctAttribute: "model" is not an attribute: '
            "it must include a domain, as in gpu.example.com/model"
        ),
    ),
    "configuration for an unknown request": (
        (
            "{requests: [{name: a, exactly: {deviceClassName: g}}],"
            " config: [{requests: [b], opaque: {driver: d, parameters: {}}}]}"
        ),
        'spec.devices.config[0].requests[0]: "b" is not one of the claim\'s requests',
    ),
    "configuration for nobody": (
        "{config: [{opaque: {driver: '', parameters: {}}}]}",
        (
            'spec.devices.config[0].opaque.driver: "" is not a driver name: '
            "a name is lowercase letters, digits, '-' and '.', starting and ending with a letter or digit"
        ),
    ),
}


@pytest.mark.parametrize(("devices", "complaint"), BAD_CLAIMS.values(), ids=BAD_CLAIMS)
def test_a_bad_claim_is_refused_in_one_line(devices: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        read(text("ResourceClaim", f"spec: {{devices: {devices}}}"), "c.yaml")
    assert str(refusal.value) == f"c.yaml: document 1 (ResourceClaim default/c): {complaint}"


@pytest.mark.parametrize(
    ("devices", "complaint"),
    [
        ("{requests: [{name: a}]}", "requests[0].deviceClassName: is required"),
        ("{requests: [{name: a, exactly: {deviceClassName: g}}]}", "requests[0].deviceClassName: is required"),
        (
            "{requests: [{name: a, count: 2, firstAvailable: [{name: x, deviceClassName: g}]}]}",
            "requests[0]: exactly one of deviceClassName and firstAvailable is required",
        ),
    ],
    ids=["a request for nothing", "a request in the spelling of v1", "a request of both kinds"],
)
def test_the_first_version_has_rules_of_its_own(devices: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        claim(devices, "v1beta1")
    assert str(refusal.value) == f"c.yaml: document 1 (ResourceClaim default/c): spec.devices.{complaint}"


@pytest.mark.parametrize(
    ("version", "devices", "complaint"),
    [
        ("v1", TERSE, "exactly one of exactly and firstAvailable is required"),
        ("v1beta1", WORDY, "requests[0].deviceClassName: is required"),
    ],
)
def test_templates_obey_the_same_rules(version: str, devices: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        only("ResourceClaimTemplate", f"spec: {{spec: {{devices: {devices}}}}}", version)
    assert "(ResourceClaimTemplate default/c): spec.spec.devices.requests[0]" in str(refusal.value)
    assert complaint in str(refusal.value)


def results(fields: str) -> str:
    return status(f"{{devices: {{results: [{{{fields}}}]}}}}")


BAD_STATUS = {
    "a device for no request": (
        results(RESULT.replace("request: gpu", "request: nic")),
        'status.allocation.devices.results[0].request: "nic" is not one of the claim\'s requests',
    ),
    "a device without a pool": (
        results("request: gpu, driver: d, device: gpu-0"),
        "status.allocation.devices.results[0].pool: is required",
    ),
    "a device that nothing can be called": (
        results(RESULT.replace("gpu-0", "GPU_0")),
        (
            'status.allocation.devices.results[0].device: "GPU_0" is not a device name: '
            "must be lowercase letters, digits or '-', and start and end with a letter or digit"
        ),
    ),
    "too many devices": (
        status("{devices: {results: [" + ", ".join([f"{{{RESULT}}}"] * 33) + "]}}"),
        "status.allocation.devices.results: must have at most 32 items, got 33",
    ),
    "two alternatives for the place": (
        status("{nodeSelector: {nodeSelectorTerms: [{}, {}]}}"),
        "status.allocation.nodeSelector.nodeSelectorTerms: must have exactly one node selector term",
    ),
    "reserved before it is given": (
        f"spec: {{devices: {WORDY}}}\nstatus: {{reservedFor: [{{resource: pods, name: p, uid: u}}]}}",
        "status.reservedFor: may not be specified when the claim is not allocated",
    ),
    "reserved twice": (
        status("{}", ", reservedFor: [{resource: pods, name: p, uid: u}, {resource: pods, name: p, uid: u}]"),
        'status.reservedFor[1].uid: "u" is named twice',
    ),
    "reserved for too many": (
        status(
            "{}",
            ", reservedFor: [" + ", ".join(f"{{resource: pods, name: p, uid: u{n}}}" for n in range(257)) + "]",
        ),
        "status.reservedFor: must have at most 256 items, got 257",
    ),
}


@pytest.mark.parametrize(("body", "complaint"), BAD_STATUS.values(), ids=BAD_STATUS)
def test_a_bad_allocation_is_refused_in_one_line(body: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        read(text("ResourceClaim", body), "c.yaml")
    assert str(refusal.value) == f"c.yaml: document 1 (ResourceClaim default/c): {complaint}"


BAD_CLASSES = {
    "a resource of Kubernetes itself": (
        "{extendedResourceName: cpu}",
        (
            'spec.extendedResourceName: "cpu" is not the name of an extended resource; '
            "write a domain and a name, e.g. example.com/gpu"
        ),
    ),
    "an empty expression": (
        "{selectors: [{cel: {expression: ''}}]}",
        "spec.selectors[0].cel.expression: is required",
    ),
    "too much configuration": (
        "{config: [" + ", ".join(["{opaque: {driver: d, parameters: {}}}"] * 33) + "]}",
        "spec.config: must have at most 32 items, got 33",
    ),
    "configuration that is no mapping": (
        "{config: [{opaque: {driver: d, parameters: 'on'}}]}",
        'spec.config[0].opaque.parameters: expected a mapping, got text ("on")',
    ),
}


@pytest.mark.parametrize(("spec", "complaint"), BAD_CLASSES.values(), ids=BAD_CLASSES)
def test_a_bad_class_is_refused_in_one_line(spec: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        read(text("DeviceClass", f"spec: {spec}"), "c.yaml")
    assert str(refusal.value) == f"c.yaml: document 1 (DeviceClass c): {complaint}"


TAINT = DeviceTaint("health", "NoExecute", "bad")
AWAY = {
    "a taint keeps everybody away": (TAINT, (), True),
    "but not who tolerates it": (TAINT, (DeviceToleration("health", "Equal", "bad"),), False),
    "or tolerates all": (TAINT, (DeviceToleration(operator="Exists"),), False),
    "another value is another taint": (TAINT, (DeviceToleration("health", "Equal", "worse"),), True),
    "another key too": (TAINT, (DeviceToleration("load", "Exists"),), True),
    "and another effect": (TAINT, (DeviceToleration("health", "Exists", effect="NoSchedule"),), True),
    "one that only tells keeps nobody away": (DeviceTaint("health", "None"), (), False),
}


@pytest.mark.parametrize(("taint", "tolerations", "want"), AWAY.values(), ids=AWAY)
def test_a_tainted_device(taint: DeviceTaint, tolerations: tuple[DeviceToleration, ...], want: bool) -> None:
    assert is_kept_away((taint,), tolerations) is want


BAD_TOLERATIONS = {
    "a value for any value": (DeviceToleration("a", "Exists", "b"), "value must be empty when operator is Exists"),
    "an end that never comes": (
        DeviceToleration("a", "Exists", toleration_seconds=5),
        "effect must be NoExecute when tolerationSeconds is set",
    ),
    "an impossible key": (DeviceToleration("a b", "Exists"), '"a b" is not a taint key'),
    "an impossible value": (DeviceToleration("a", "Equal", "b c"), '"b c" is not a taint value'),
}


@pytest.mark.parametrize(("toleration", "complaint"), BAD_TOLERATIONS.values(), ids=BAD_TOLERATIONS)
def test_a_bad_toleration_is_refused(toleration: DeviceToleration, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        toleration.check(Where())


def test_a_name_without_a_domain_is_the_drivers() -> None:
    assert full_name("model", "gpu.nvidia.com") == "gpu.nvidia.com/model"
    assert full_name("x.com/model", "gpu.nvidia.com") == "x.com/model"


NAMES = {
    "an identifier alone": (qualified_name_fault("memory"), True),
    "an identifier with its domain": (qualified_name_fault("x.com/memory"), True),
    "a domain alone": (qualified_name_fault("x.com/"), False),
    "an identifier that starts with a digit": (qualified_name_fault("3d"), False),
    "an identifier of 32 characters": (qualified_name_fault("a" * 32), True),
    "an identifier of 33": (qualified_name_fault("a" * 33), False),
    "a domain of 64": (qualified_name_fault("a" * 64 + "/b"), False),
    "a full name": (full_name_fault("x.com/memory"), True),
    "half of one": (full_name_fault("memory"), False),
    "a pool in a pool": (pool_fault("rack-1/node-1"), True),
    "a pool with an empty part": (pool_fault("rack-1//node-1"), False),
    "a pool of 254 characters": (pool_fault("a" * 254), False),
}


@pytest.mark.parametrize(("fault", "is_good"), NAMES.values(), ids=NAMES)
def test_names_in_claims(fault: str, is_good: bool) -> None:
    assert (fault == "") is is_good
