"""The judge of the cases of node components: it looks at the answer last, and must be able to say no."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .__main__ import results_of
from .devices import labels, preferred, sharing
from .result import Result

OPEN_CASES = Path(__file__).parents[3] / "shared" / "scenarios"
FAMILIES = ("labels", "sharing", "preferred")

GPU = {
    "model": "MODEL",
    "memoryMiB": 300,
    "computeCapability": None,
    "migCapable": False,
    "migEnabled": False,
    "pciClass": "0x030200",
    "fabric": None,
    "migInstances": [],
}
MACHINE = {"machineType": "m", "driverVersion": "1.2", "cudaVersion": [8, 0], "gpus": [GPU], "vgpuDevices": []}
LABELS: dict[str, Any] = {"id": "one", "machine": MACHINE, "flags": {"migStrategy": "none", "noTimestamp": True}}
LINKS = [{"a": 0, "b": 1, "nvlinks": 1, "pcie": "same-cpu"}, {"a": 1, "b": 2, "nvlinks": 0, "pcie": "cross-cpu"}]
CHOICE: dict[str, Any] = {
    "id": "two",
    "machine": {"name": "m", "gpus": 3, "links": LINKS},
    "available": [0, 1, 2],
    "required": [],
    "size": 2,
}
REPLICAS: dict[str, Any] = {
    "id": "three",
    "policy": "distributed",
    "devices": ["a::0", "a::1", "b::0", "b::1"],
    "available": ["a::0", "a::1", "b::0", "b::1"],
    "required": [],
    "size": 2,
}
PARSED: dict[str, Any] = {"id": "four", "stage": "parse", "document": "version: v1\nimex: {channelIDs: [0]}"}
LIMIT: dict[str, Any] = {"id": "seven", "stage": "mps-limit", "computeCapability": "7.0", "replicas": 17}
BAD: dict[str, Any] = {"id": "five", "stage": "parse", "document": "version: v1\nsharing: {mps: {}}"}


def correct_labels() -> dict[str, str]:
    found = labels.decide(LABELS)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("judge", "case", "expect", "status"),
    [
        (labels.results_of_case, LABELS, {"labels": correct_labels()}, "pass"),
        (labels.results_of_case, LABELS, {"labels": {**correct_labels(), "nvidia.com/x": ""}}, "fail"),
        (labels.results_of_case, LABELS, {"labels": {**correct_labels(), "nvidia.com/gpu.count": "2"}}, "fail"),
        (labels.results_of_case, LABELS, {"error": "driver-version"}, "fail"),
        (preferred.results_of_case, CHOICE, {"set": [0, 1], "acceptable": [[0, 1]], "score": 120}, "pass"),
        (preferred.results_of_case, CHOICE, {"set": [0, 2], "acceptable": [[0, 2]], "score": 0}, "fail"),
        (preferred.results_of_case, CHOICE, {"set": [], "refused": True}, "fail"),
        (preferred.results_of_case, CHOICE, {"steps": [{"size": 2, "set": [0, 1], "acceptable": [[0, 1]]}]}, "pass"),
        (preferred.results_of_case, CHOICE, {"steps": [{"size": 2, "set": [1, 2], "acceptable": [[1, 2]]}]}, "fail"),
        (preferred.results_of_case, REPLICAS, {"perGpuAnyOf": [{"a": 1, "b": 1}]}, "pass"),
        (preferred.results_of_case, REPLICAS, {"perGpuAnyOf": [{"a": 2}]}, "fail"),
        (preferred.results_of_case, REPLICAS, {"refused": True}, "fail"),
        (sharing.results_of_case, PARSED, {"accepted": {"strategy": "none", "imexChannelIDs": [0]}}, "pass"),
        (sharing.results_of_case, PARSED, {"accepted": {"strategy": "mps"}}, "fail"),
        (sharing.results_of_case, PARSED, {"accepted": {"fieldOfTheFuture": 1}}, "fail"),
        (sharing.results_of_case, PARSED, {"refused": {"class": "imex"}}, "fail"),
        (sharing.results_of_case, BAD, {"refused": {"class": "no-resources"}}, "pass"),
        (sharing.results_of_case, BAD, {"refused": {"class": "replicas-too-few"}}, "fail"),
        (sharing.results_of_case, BAD, {"accepted": {"strategy": "mps"}}, "fail"),
        (sharing.results_of_case, LIMIT, {"refused": {"class": "mps-clients"}, "maxClients": 16}, "pass"),
        (sharing.results_of_case, LIMIT, {"refused": {"class": "mps-clients"}, "maxClients": 48}, "fail"),
        (sharing.results_of_case, LIMIT, {"allowed": True, "maxClients": 16}, "fail"),
        (sharing.results_of_case, {"id": "six", "stage": "dream"}, {"allowed": True}, "out_of_scope"),
    ],
)
def test_a_case_passes_if_and_only_if_its_expectation_is_met(
    judge: Callable[[dict[str, Any]], list[Result]], case: dict[str, Any], expect: dict[str, Any], status: str
) -> None:
    before = copy.deepcopy(case)
    (result,) = judge({**case, "expect": expect})
    assert (result.status, bool(result.diff)) == (status, status == "fail"), result
    assert case == before


def test_words_that_a_message_lacks_are_a_note_and_no_failure() -> None:
    (result,) = sharing.results_of_case({**BAD, "expect": {"refused": {"class": "no-resources", "mentions": ["xyz"]}}})
    assert (result.status, result.notes) == ("pass", ["the message does not mention xyz: no resources specified"])


@pytest.mark.parametrize("family", FAMILIES)
def test_the_open_cases_pass(family: str) -> None:
    folder = OPEN_CASES / family
    if not folder.is_dir():
        pytest.skip("the open cases are not beside this checkout")
    results = results_of([folder])
    assert len(results) >= 13
    assert [result for result in results if result.status != "pass"] == []
