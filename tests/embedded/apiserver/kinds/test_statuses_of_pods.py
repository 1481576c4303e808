"""What a kubelet may write into the status of a pod."""

from __future__ import annotations

from typing import Any

import pytest

from build.kind_objects import created, pod, texts
from shoal.embedded.apiserver.kinds.table import STRATEGIES

WORDS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
RUNNING: dict[str, Any] = {
    "phase": "Running", "qosClass": "BestEffort", "startTime": "2026-11-21T10:00:00Z", "observedGeneration": 1,
    "hostIP": "10.0.0.5", "hostIPs": [{"ip": "10.0.0.5"}, {"ip": "fd00::5"}],
    "podIP": "10.1.0.7", "podIPs": [{"ip": "10.1.0.7"}, {"ip": "fd01::7"}],
    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T10:00:01Z"}],
    "containerStatuses": [
        {
            "name": "main", "ready": True, "restartCount": 0, "image": "registry/train:1.2", "imageID": "sha256:1",
            "state": {"running": {"startedAt": "2026-11-21T10:00:01Z"}}, "lastState": {}, "started": True,
        }
    ],
}  # fmt: skip


def written(status: dict[str, Any], before: dict[str, Any] | None = None) -> tuple[dict[str, Any], list[str]]:
    """What is stored, and what is refused."""
    strategy = STRATEGIES["", "pods"]
    made = created("", "pods", pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "g"}]))
    old = made | {"status": made["status"] | (before or {})}
    new = made | {"status": status, "metadata": dict(made["metadata"])}
    strategy.prepare_status(new, old)
    return new["status"], texts(strategy.validate_status(new, old))


def test_what_a_kubelet_writes_is_taken_as_it_is() -> None:
    assert written(RUNNING) == (RUNNING, [])
    assert written(RUNNING, RUNNING) == (RUNNING, [])
    assert written({"phase": "Failed", "reason": "Evicted"}, RUNNING)[1] == []


def test_the_single_address_wins_and_stands_in_both_places() -> None:
    status, _ = written({"podIP": "10.1.0.8", "podIPs": [{"ip": "10.1.0.7"}]})
    assert status["podIPs"] == [{"ip": "10.1.0.8"}]
    status, _ = written({"podIP": "10.1.0.8"})
    assert status["podIPs"] == [{"ip": "10.1.0.8"}]
    status, _ = written({"podIPs": [{"ip": "10.1.0.7"}]})
    assert status["podIP"] == "10.1.0.7"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"podIP": "abc", "podIPs": [{"ip": "zz"}]}, f'status.podIPs[0]: Invalid value: "abc": {WORDS}'),
        ({"hostIP": "x", "hostIPs": [{"ip": "x"}]}, f'status.hostIPs[0]: Invalid value: "x": {WORDS}'),
        (
            {"hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.2"}]},
            'status.hostIPs[0].ip: Invalid value: "10.0.0.2": must be equal to `hostIP`',
        ),
        (
            {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]},
            (
                'status.podIPs: Invalid value: [{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]: may specify no more than one IP '
                "for each IP family"
            ),
        ),
        (
            {"resourceClaimStatuses": [{"name": "other"}]},
            (
                'status.resourceClaimStatuses[0].name: Invalid value: "other": must match the name of an entry in '
                "`spec.resourceClaims`"
            ),
        ),
    ],
    ids=["pod", "host", "unequal", "family", "claim"],
)
def test_what_nobody_could_be_reached_by_is_refused(status: dict[str, Any], words: str) -> None:
    assert written(status)[1] == [words]


def test_a_wrong_address_from_before_may_stay() -> None:
    before = {"podIP": "abc", "podIPs": [{"ip": "abc"}]}
    assert written(before | {"phase": "Running"}, before)[1] == []


def test_a_claim_that_the_pod_has_is_taken() -> None:
    assert written({"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "train-gpu-x"}]})[1] == []
