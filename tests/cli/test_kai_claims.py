"""A shared claim on GPUs needs the label of its pods' queue: the answer names claim, label and queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.manifests import Object, as_file, node, thing
from build.manifests import pod as pod_object
from build.other_queues import kai_queue
from shoal.cli.main import main

_QUEUE = "kai.scheduler/queue"
_CLASS = "gpu.nvidia.com"


def _world(label: str, *, has_template: bool = False) -> list[Object]:
    claim_spec = {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": _CLASS}}]}}
    api = "resource.k8s.io/v1"
    device_class = thing(
        api, "DeviceClass", _CLASS, spec={"selectors": [{"cel": {"expression": f"device.driver == '{_CLASS}'"}}]}
    )
    about = {"type": "gpu", "uuid": "GPU-0", "productName": "NVIDIA A100"}
    attributes = {name: {"string": value} for name, value in about.items()}
    device = {"name": "gpu-0", "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec: dict[str, Any] = {"driver": _CLASS, "nodeName": "n1", "pool": pool, "devices": [device]}
    shared = thing(api, "ResourceClaim", "t/shared", spec=claim_spec)
    shared["metadata"]["labels"] = {_QUEUE: label} if label else {}
    template = thing(api, "ResourceClaimTemplate", "t/own", spec={"spec": claim_spec})
    reference = {"resourceClaimTemplateName": "own"} if has_template else {"resourceClaimName": "shared"}
    pod = pod_object("t/p", labels={_QUEUE: "team"}, schedulerName="kai-scheduler")
    pod["spec"]["resourceClaims"] = [{"name": "x", **reference}]
    pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "x"}]}
    slice_ = thing(api, "ResourceSlice", "s1", spec=spec)
    return [node("n1"), device_class, slice_, shared, template, kai_queue("team", quota=4), pod]


CASES = {
    "a claim without the label": (
        "",
        (
            "ResourceClaimNotInQueue",
            "ResourceClaim 't/shared' requests GPUs and has no label kai.scheduler/queue",
            "this one is in 'team'",
            "kubectl label resourceclaim shared -n t kai.scheduler/queue=team",
        ),
    ),
    "a claim of another queue": (
        "other",
        (
            "has the label kai.scheduler/queue=other",
            "Submit the workload to queue 'other'",
            "kai.scheduler/queue=team --overwrite",
        ),
    ),
}


@pytest.mark.parametrize(("label", "words"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("command", [["decide"], ["why", "pod/p", "-n", "t"]], ids=["decide", "why"])
def test_the_answer_names_the_claim_the_label_and_the_queue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str], label: str, words: tuple[str, ...]
) -> None:
    assert main([*command, "-f", as_file(tmp_path, *_world(label))]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for each in words:
        assert each in said
    assert "by itself" not in said


@pytest.mark.parametrize(("label", "has_template"), [("team", False), ("", True)], ids=["labelled", "from a template"])
def test_a_claim_of_the_queue_and_one_from_a_template_are_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], label: str, has_template: bool
) -> None:
    assert main(["decide", "-f", as_file(tmp_path, *_world(label, has_template=has_template))]) == 0
    assert "1 placed" in capsys.readouterr().out
