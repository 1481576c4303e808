"""What drivers publish of their devices, and what is refused of it."""

import pytest

from shoal.api.decode import read
from shoal.api.device_capacity import Capacity, RequestPolicy, ValidRange
from shoal.api.slices import Attribute, ResourceSlice
from shoal.units.errors import UserError, Where
from shoal.units.quantity import Quantity

HEAD = "driver: gpu.nvidia.com, pool: {name: n1, generation: 3, resourceSliceCount: 2}"


def text(spec: str, version: str = "v1") -> str:
    return f"apiVersion: resource.k8s.io/{version}\nkind: ResourceSlice\nmetadata: {{name: s}}\nspec: {{{spec}}}\n"


def only(spec: str, version: str = "v1") -> ResourceSlice:
    (document,) = read(text(spec, version), "s.yaml")
    assert isinstance(document.value, ResourceSlice)
    return document.value


TRAITS = (
    "attributes: {model: {string: H200}, uuid: {string: GPU-1}, index: {int: 0}, ecc: {bool: false},"
    " driverVersion: {version: 580.65.6}}, capacity: {memory: {value: 141Gi}},"
    " consumesCounters: [{counterSet: gpu-0, counters: {slices: {value: 7}}}],"
    " taints: [{key: health, value: bad, effect: NoExecute}]"
)


def test_a_slice_is_read_with_its_pool_and_devices() -> None:
    piece = only(
        f"{HEAD}, nodeName: n1, devices: [{{name: gpu-0, {TRAITS}}}],"
        " sharedCounters: [{name: gpu-0, counters: {slices: {value: 7}}}]"
    )
    assert (piece.spec.pool.name, piece.spec.pool.generation, piece.spec.pool.resource_slice_count) == ("n1", 3, 2)
    (device,) = piece.spec.devices
    values = {name: attribute.value() for name, attribute in device.traits().attributes.items()}
    assert values == {"model": "H200", "uuid": "GPU-1", "index": 0, "ecc": False, "driverVersion": "580.65.6"}
    assert device.traits().capacity["memory"].value == Quantity.parse("141Gi")
    assert device.traits().taints[0].keeps_away()
    assert piece.spec.shared_counters[0].counters["slices"].value == Quantity.of(7)
    assert piece.metadata.namespace == ""


@pytest.mark.parametrize("version", ["v1", "v1beta2"])
def test_both_spellings_of_a_device_come_to_one_value(version: str) -> None:
    plain = only(f"{HEAD}, nodeName: n1, devices: [{{name: a, {TRAITS}}}]", version).spec.devices[0]
    basic = only(f"{HEAD}, nodeName: n1, devices: [{{name: a, basic: {{{TRAITS}}}}}]", "v1beta1").spec.devices[0]
    for field in ("attributes", "capacity", "consumes_counters", "taints", "node_name"):
        assert getattr(plain.traits(), field) == getattr(basic.traits(), field)


def test_a_slice_says_where_its_devices_are_or_leaves_it_to_them() -> None:
    together = only(f"{HEAD}, nodeName: n1, devices: [{{name: a}}]")
    assert together.reach(together.spec.devices[0]).node_name == "n1"
    apart = only(
        f"{HEAD}, perDeviceNodeSelection: true, devices: [{{name: a, nodeName: n1}}, {{name: b, allNodes: true}}]"
    )
    first, second = apart.spec.devices
    assert apart.reach(first).node_name == "n1"
    assert apart.reach(second).all_nodes


def device(traits: str) -> str:
    return f"{HEAD}, allNodes: true, devices: [{{name: a, {traits}}}]"


def shared(policy: str) -> str:
    return device(f"allowMultipleAllocations: true, capacity: {{memory: {{value: 40Gi, requestPolicy: {{{policy}}}}}}}")


SET = "counters: {slices: {value: 7}}"
MEMORY = "spec.devices[0].capacity.memory"
POLICY = f"{MEMORY}.requestPolicy"
WHERE = "spec: exactly one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection is required"
BAD = {
    "no driver": ("pool: {name: p, resourceSliceCount: 1}, allNodes: true", "spec.driver: is required"),
    "a driver with a slash": (
        "driver: a/b, pool: {name: p, resourceSliceCount: 1}, allNodes: true",
        (
            'spec.driver: "a/b" is not a driver name: '
            "a name is lowercase letters, digits, '-' and '.', starting and ending with a letter or digit"
        ),
    ),
    "a driver of 64 characters": (
        f"driver: {'a' * 64}, pool: {{name: p, resourceSliceCount: 1}}, allNodes: true",
        f'spec.driver: "{"a" * 57}..." is not a driver name: must be no more than 63 characters',
    ),
    "no pool": ("driver: d, allNodes: true", "spec.pool: is required"),
    "a pool of no slices": (
        "driver: d, pool: {name: p, resourceSliceCount: 0}, allNodes: true",
        "spec.pool.resourceSliceCount: must be at least 1, got 0",
    ),
    "a pool before the first": (
        "driver: d, pool: {name: p, generation: -1, resourceSliceCount: 1}, allNodes: true",
        "spec.pool.generation: must be at least 0, got -1",
    ),
    "nowhere": (HEAD, WHERE),
    "in two places": (f"{HEAD}, nodeName: n1, allNodes: true", WHERE),
    "in one place and in each device's": (f"{HEAD}, nodeName: n1, perDeviceNodeSelection: true", WHERE),
    "in one of two places": (
        f"{HEAD}, nodeSelector: {{nodeSelectorTerms: [{{}}, {{}}]}}",
        "spec.nodeSelector.nodeSelectorTerms: must have exactly one node selector term",
    ),
    "a device that says where, unasked": (
        device("nodeName: n1"),
        "spec.devices[0]: nodeName, nodeSelector and allNodes of a device need perDeviceNodeSelection: true",
    ),
    "a device that does not say where": (
        f"{HEAD}, perDeviceNodeSelection: true, devices: [{{name: a}}]",
        ("spec.devices[0]: exactly one of nodeName, nodeSelector and allNodes is required with perDeviceNodeSelection"),
    ),
    "two devices of one name": (
        f"{HEAD}, allNodes: true, devices: [{{name: a}}, {{name: a}}]",
        'spec.devices[1].name: "a" is named twice',
    ),
    "a device with a dot": (
        f"{HEAD}, allNodes: true, devices: [{{name: a.b}}]",
        (
            'spec.devices[0].name: "a.b" is not a device name: '
            "must be lowercase letters, digits or '-', and start and end with a letter or digit"
        ),
    ),
    "too many devices": (
        f"{HEAD}, allNodes: true, devices: [" + ", ".join(f"{{name: d{n}}}" for n in range(129)) + "]",
        "spec.devices: must have at most 128 items, got 129",
    ),
    "a device in the spelling of v1beta1": (
        device("basic: {}"),
        "spec.devices[0].basic: is only for resource.k8s.io/v1beta1; put its fields beside the name",
    ),
    "too much to say of a device": (
        device("attributes: {" + ", ".join(f"a{n}: {{int: 1}}" for n in range(33)) + "}"),
        "spec.devices[0]: may have at most 32 attributes and capacities together",
    ),
    "an attribute that nothing can be called": (
        device("attributes: {a-b: {int: 1}}"),
        (
            'spec.devices[0].attributes: "a-b" is not an attribute or capacity: '
            "the identifier must be letters, digits or '_', and not start with a digit"
        ),
    ),
    "an attribute of no kind": (
        device("attributes: {x.com/a: {}}"),
        "spec.devices[0].attributes[x.com/a]: exactly one of bool, int, string and version is required",
    ),
    "an attribute of two kinds": (
        device("attributes: {a: {int: 1, string: b}}"),
        "spec.devices[0].attributes.a: exactly one of bool, int, string and version is required",
    ),
    "a long attribute": (
        device(f"attributes: {{a: {{string: {'b' * 65}}}}}"),
        "spec.devices[0].attributes.a.string: must be no more than 64 characters",
    ),
    "a version of two parts": (
        device("attributes: {a: {version: '1.2'}}"),
        'spec.devices[0].attributes.a.version: "1.2" is not a version as in semver.org; write e.g. 1.2.3',
    ),
    "less than no capacity": (
        device("capacity: {memory: {value: -1}}"),
        f"{MEMORY}.value: must be 0 or more, got -1",
    ),
    "a policy for a device that is not shared": (
        device("capacity: {memory: {value: 40Gi, requestPolicy: {default: 1Gi}}}"),
        f"{POLICY}: is only for devices with allowMultipleAllocations: true",
    ),
    "portions by value and by range": (
        shared("default: 1Gi, validValues: [1Gi], validRange: {min: 1Gi}"),
        f"{POLICY}: validValues and validRange cannot be both set",
    ),
    "portions without a default": (
        shared("validValues: [1Gi]"),
        f"{POLICY}.default: is required with validValues or validRange",
    ),
    "a default beyond the device": (
        shared("default: 41Gi"),
        f"{POLICY}.default: must be from 0 to the capacity of 40Gi, got 41Gi",
    ),
    "a default that is no portion": (
        shared("default: 3Gi, validValues: [2Gi, 4Gi]"),
        f"{POLICY}.default: 3Gi is not one of the valid amounts",
    ),
    "a default between two steps": (
        shared("default: 3Gi, validRange: {min: 2Gi, step: 2Gi}"),
        f"{POLICY}.default: 3Gi is not one of the valid amounts",
    ),
    "a portion beyond the device": (
        shared("default: 2Gi, validValues: [2Gi, 41Gi]"),
        f"{POLICY}.validValues[1]: must be from 0 to the capacity of 40Gi, got 41Gi",
    ),
    "portions out of order": (
        shared("default: 2Gi, validValues: [4Gi, 2Gi]"),
        f"{POLICY}.validValues[1]: must be larger than the value before it; sort the values",
    ),
    "too many portions": (
        shared(f"default: 1, validValues: [{', '.join(str(n) for n in range(1, 12))}]"),
        f"{POLICY}.validValues: must have at most 10 items, got 11",
    ),
    "a range without a beginning": (
        shared("default: 2Gi, validRange: {max: 4Gi}"),
        f"{POLICY}.validRange.min: is required",
    ),
    "a range beyond the device": (
        shared("default: 2Gi, validRange: {min: 2Gi, max: 41Gi}"),
        f"{POLICY}.validRange.max: must be at most the capacity of 40Gi, got 41Gi",
    ),
    "a range that ends before it begins": (
        shared("default: 2Gi, validRange: {min: 4Gi, max: 2Gi}"),
        f"{POLICY}.validRange.min: must be at most 2Gi, got 4Gi",
    ),
    "a range that ends between two steps": (
        shared("default: 2Gi, validRange: {min: 2Gi, max: 5Gi, step: 2Gi}"),
        f"{POLICY}.validRange.max: must be min plus a multiple of step, got 5Gi",
    ),
    "a range that begins below zero": (
        shared("default: 2Gi, validRange: {min: -1}"),
        f"{POLICY}.validRange.min: must be 0 or more, got -1",
    ),
    "a range of no step": (
        shared("default: 2Gi, validRange: {min: 2Gi, step: 0}"),
        f"{POLICY}.validRange.step: must be greater than zero, got 0",
    ),
    "a taint of no effect": (
        device("taints: [{key: a}]"),
        "spec.devices[0].taints[0].effect: is required",
    ),
    "an impossible taint": (
        device("taints: [{key: '', effect: None}]"),
        'spec.devices[0].taints[0].key: "" is not a taint key: name part must be non-empty',
    ),
    "too many taints": (
        device("taints: [" + ", ".join(f"{{key: k{n}, effect: None}}" for n in range(17)) + "]"),
        "spec.devices[0].taints: must have at most 16 items, got 17",
    ),
    "a counter set consumed twice": (
        device(f"consumesCounters: [{{counterSet: s, {SET}}}, {{counterSet: s, {SET}}}]"),
        'spec.devices[0].consumesCounters[1].counterSet: "s" is named twice',
    ),
    "a counter set that nothing is taken from": (
        device("consumesCounters: [{counterSet: s}]"),
        "spec.devices[0].consumesCounters[0].counters: at least one counter is required",
    ),
    "two counter sets of one name": (
        f"{HEAD}, allNodes: true, sharedCounters: [{{name: s, {SET}}}, {{name: s, {SET}}}]",
        'spec.sharedCounters[1].name: "s" is named twice',
    ),
    "too many counter sets": (
        f"{HEAD}, allNodes: true, sharedCounters: [" + ", ".join(f"{{name: s{n}, {SET}}}" for n in range(9)) + "]",
        "spec.sharedCounters: must have at most 8 items, got 9",
    ),
    "a counter below zero": (
        f"{HEAD}, allNodes: true, sharedCounters: [{{name: s, counters: {{a: {{value: -1}}}}}}]",
        "spec.sharedCounters[0].counters.a.value: must be 0 or more, got -1",
    ),
    "a counter that nothing can be called": (
        f"{HEAD}, allNodes: true, sharedCounters: [{{name: s, counters: {{A: {{value: 1}}}}}}]",
        (
            'spec.sharedCounters[0].counters: "A" is not a counter: '
            "must be lowercase letters, digits or '-', and start and end with a letter or digit"
        ),
    ),
    "too many counters": (
        (
            f"{HEAD}, allNodes: true, sharedCounters: [{{name: s, counters: {{"
            + ", ".join(f"c{n}: {{value: 1}}" for n in range(33))
            + "}}]"
        ),
        "spec.sharedCounters[0].counters: must have at most 32 items, got 33",
    ),
    "a counter set without a name": (
        f"{HEAD}, allNodes: true, sharedCounters: [{{{SET}}}]",
        "spec.sharedCounters[0].name: is required",
    ),
}


@pytest.mark.parametrize(("spec", "complaint"), BAD.values(), ids=BAD)
def test_a_bad_slice_is_refused_in_one_line(spec: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        read(text(spec), "s.yaml")
    assert str(refusal.value) == f"s.yaml: document 1 (ResourceSlice s): {complaint}"


def test_the_first_version_keeps_everything_under_basic() -> None:
    with pytest.raises(UserError, match=r"spec\.devices\[0\]\.basic: is required"):
        only(device("attributes: {a: {int: 1}}"), "v1beta1")
    with pytest.raises(UserError, match=r"spec\.devices\[0\]\.basic\.attributes\.a: exactly one of"):
        only(device("basic: {attributes: {a: {}}}"), "v1beta1")


@pytest.mark.parametrize("version", ["0.0.0", "1.2.3-rc.1", "1.2.3+build.5", "1.2.3-0a.x-y+z", "580.65.6"])
def test_versions_are_those_of_semver(version: str) -> None:
    given = Attribute(version=version)
    given.check(Where())
    assert given.value() == version


@pytest.mark.parametrize("version", ["", "1", "1.2", "01.2.3", "1.2.3-", "1.2.3-01", "v1.2.3", "1.2.3+", "1.2.3 "])
def test_and_no_others(version: str) -> None:
    with pytest.raises(UserError, match="is not a version"):
        Attribute(version=version).check(Where())


def gi(amount: int) -> Quantity:
    return Quantity.parse(f"{amount}Gi")


VALUES = RequestPolicy(default=gi(10), valid_values=(gi(10), gi(20)))
RANGE = RequestPolicy(default=gi(8), valid_range=ValidRange(gi(4), gi(16), gi(4)))
OPEN = RequestPolicy(default=gi(1), valid_range=ValidRange(gi(1)))
PORTIONS: dict[str, tuple[RequestPolicy | None, Quantity | None, Quantity | None]] = {
    "all of it without a policy and without a wish": (None, None, gi(40)),
    "what was asked for without a policy": (None, gi(3), gi(3)),
    "nothing where more was asked for than there is": (None, gi(41), None),
    "the default for who does not say": (VALUES, None, gi(10)),
    "the next larger value": (VALUES, gi(11), gi(20)),
    "a value as it is": (VALUES, gi(20), gi(20)),
    "nothing beyond the largest value": (VALUES, gi(21), None),
    "the beginning of the range at least": (RANGE, gi(1), gi(4)),
    "the next step": (RANGE, gi(9), gi(12)),
    "a step as it is": (RANGE, gi(12), gi(12)),
    "nothing beyond the range": (RANGE, gi(17), None),
    "any amount in a range without steps": (OPEN, gi(39), gi(39)),
    "nothing beyond the device": (OPEN, gi(41), None),
    "all of it under a policy that says nothing": (RequestPolicy(), None, gi(40)),
}


@pytest.mark.parametrize(("policy", "asked", "want"), PORTIONS.values(), ids=PORTIONS)
def test_a_claim_takes_of_a_shared_device(
    policy: RequestPolicy | None, asked: Quantity | None, want: Quantity | None
) -> None:
    assert Capacity(gi(40), policy).portion(asked) == want
