"""Device selectors in CEL: what they select, what they complain about, and when."""

from __future__ import annotations

from itertools import pairwise

import pytest

from shoal.store.dra.cel import Fault, device_value, selector_of
from shoal.units.quantity import Quantity
from shoal.units.semver import compare_versions, is_version, parse_version

GPU = device_value(
    "gpu.nvidia.com",
    {
        "gpu.nvidia.com/type": ("string", "gpu"),
        "gpu.nvidia.com/productName": ("string", "NVIDIA H100 80GB HBM3"),
        "gpu.nvidia.com/index": ("int", 3),
        "gpu.nvidia.com/healthy": ("bool", True),
        "gpu.nvidia.com/driverVersion": ("version", "550.54.15"),
        "resource.kubernetes.io/pcieRoot": ("string", "pci0000:01"),
    },
    {"gpu.nvidia.com/memory": Quantity.parse("80Gi"), "gpu.nvidia.com/half": Quantity.parse("500m")},
    shared=False,
)

A = 'device.attributes["gpu.nvidia.com"]'
C = 'device.capacity["gpu.nvidia.com"]'

SELECTS: dict[str, tuple[str, bool]] = {
    "the driver": ('device.driver == "gpu.nvidia.com"', True),
    "a text": (f'{A}.type == "gpu"', True),
    "a number": (f"{A}.index < 4 && {A}.index >= 3", True),
    "a truth value as it stands": (f"{A}.healthy", True),
    "an attribute by index": (f'{A}["type"] == "mig"', False),
    "another domain": ('device.attributes["resource.kubernetes.io"].pcieRoot.startsWith("pci")', True),
    "one of a list": (f'{A}.type in ["gpu", "mig"]', True),
    "a list with a condition": (f"[1, 2, 3].exists(i, i == {A}.index)", True),
    "a pattern, in lower case": (f'{A}.productName.lowerAscii().matches("^.*h100.*$")', True),
    "a part of a text": (f'{A}.productName.split(" ")[1] == "H100"', True),
    "an attribute that is asked for before it is read": (f"has({A}.color) && {A}.color == 1", False),
    "an optional attribute": (f'{A}.?color.orValue("grey") == "grey"', True),
    "a name for a part": (f"cel.bind(a, {A}, a.index == 3 && a.healthy)", True),
    "a domain that the device does not have, asked for": ('"other.com" in device.attributes', False),
    "a domain that the device does not have reads as empty": ('has(device.attributes["other.com"].x)', False),
    "and so do two": ('has(device.attributes["a.com"].x) || has(device.capacity["b.com"].y)', False),
    "a domain of attributes without capacity": ('has(device.capacity["resource.kubernetes.io"].memory)', False),
    "memory enough": (f'{C}.memory.compareTo(quantity("40Gi")) >= 0', True),
    "memory beyond": (f'{C}.memory.isGreaterThan(quantity("80Gi"))', False),
    "memory below": (f'{C}.memory.isLessThan(quantity("81Gi"))', True),
    "memory in another spelling": (f'{C}.memory == quantity("81920Mi")', True),
    "memory added up": (f'{C}.memory.add(quantity("1Gi")).sub(quantity("80Gi")) == quantity("1Gi")', True),
    "memory as a number": (f"{C}.memory.asInteger() > 85000000000", True),
    "memory with a number added": (f"{C}.memory.add(1).sub(1).isInteger()", True),
    "the sign of a quantity": (f'{C}.memory.sub(quantity("81Gi")).sign() == -1', True),
    "half a unit": (f"{C}.half.isInteger() || {C}.half.asApproximateFloat() != 0.5", False),
    "a text that is a quantity": ('isQuantity("1.5Gi") && !isQuantity("1.5 Gi")', True),
    "a version": (f'{A}.driverVersion.isGreaterThan(semver("550.54.9"))', True),
    "a version's parts": (f"{A}.driverVersion.major() == 550 && {A}.driverVersion.patch() == 15", True),
    "a version compared": (f'{A}.driverVersion.compareTo(semver("551.0.0")) == -1', True),
    "a version with its build": (f'{A}.driverVersion == semver("550.54.15+build")', True),
    "a text that is a version": ('isSemver("1.2.3") && !isSemver("1.2")', True),
    "a version written loosely": ('semver("v1.02", true) == semver("1.2.0")', True),
    "multiple allocations": ("device.allowMultipleAllocations", False),
}


@pytest.mark.parametrize(("expression", "selects"), SELECTS.values(), ids=SELECTS)
def test_what_an_expression_selects(expression: str, selects: bool) -> None:
    selector = selector_of(expression)
    assert selector.fault == ""
    assert selector.selects(GPU) is selects


MEANINGLESS: dict[str, tuple[str, str]] = {
    "no expression": ("a b", "Syntax error"),
    "an unknown name": ("gpu.memory > 3", "undeclared reference to 'gpu"),
    "an unknown function": ('device.driver.endswith("x")', "undeclared reference to 'endswith'"),
    "a quantity compared with a number": ("quantity('1') > 1", "found no matching overload"),
    "methods of one type on another": ('"1".isGreaterThan("2")', "found no matching overload for 'isGreaterThan'"),
}


@pytest.mark.parametrize(("expression", "complaint"), MEANINGLESS.values(), ids=MEANINGLESS)
def test_an_expression_that_means_nothing_says_why(expression: str, complaint: str) -> None:
    assert complaint in selector_of(expression).fault
    assert "\n" not in selector_of(expression).fault


FAILING: dict[str, tuple[str, str]] = {
    "an attribute that is not there": (f"{A}.color == 1", "no such key: color"),
    "an attribute of a domain that is not there": ('device.attributes["other.com"].x == 1', "no such key: x"),
    "a quantity nobody can read": (f'{C}.memory == quantity("8 Gi")', 'quantity "8 Gi" contains blanks'),
    "a version nobody can read": ('semver("1.2") == semver("1.2.0")', "'1.2' is not a semantic version"),
    "half a unit as a whole number": (f"{C}.half.asInteger() == 0", "not a whole number"),
    "a text where truth is wanted": (f"{A}.type", "it comes to string where true or false is wanted"),
    "text compared as a version": (f'{A}.type.isGreaterThan(semver("1.0.0"))', "No matching overloads"),
    "a loop without an end in sight": (
        "[1,2,3,4,5,6,7,8,9].all(i, " * 6 + f"{A}.healthy" + ")" * 6,
        "teration budget exceeded",
    ),
}


@pytest.mark.parametrize(("expression", "complaint"), FAILING.values(), ids=FAILING)
def test_an_expression_that_fails_on_a_device_says_why(expression: str, complaint: str) -> None:
    verdict = selector_of(expression).selects(GPU)
    assert isinstance(verdict, Fault)
    assert complaint in verdict.what


def test_versions_come_in_the_order_of_semver() -> None:
    order = [
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1.0.0",
        "1.0.1",
        "1.10.0",
    ]
    versions = [parse_version(text) for text in order]
    assert [compare_versions(one, other) for one, other in pairwise(versions)] == [-1] * 8
    assert all(compare_versions(one, one) == 0 for one in versions)


@pytest.mark.parametrize("text", ["1", "1.2", "01.2.3", "1.2.3-", "1.2.3 ", "v1.2.3", "1.2.x"])
def test_what_is_not_a_version(text: str) -> None:
    assert not is_version(text)
