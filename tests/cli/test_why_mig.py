"""What `shoal why` proposes for pods that request MIG instances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.manifests import Object, node, pod
from build.why_answers import H100, SLICE, WhyAnswers, of_cluster


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> WhyAnswers:
    return WhyAnswers(tmp_path, capsys)


# -- MIG -----------------------------------------------------------------------------------------------------------


def asks_slice() -> Object:
    return pod("t/slice", limits={SLICE: 1})


def test_the_mig_layout_that_satisfies_a_request_is_named_with_its_label(told: WhyAnswers) -> None:
    text = told("pod/slice", of_cluster(node("n", 8, labels=H100)), asks_slice())
    assert "asks 1 x MIG 3g.40gb nodes" in text.replace("turn priority 0; 1 of 1 in line ", "")
    assert "kubectl label node n nvidia.com/mig.config=all-3g.40gb --overwrite" in text
    assert "no pod uses its GPUs" in text


def test_pods_that_another_layout_would_disturb_are_named(told: WhyAnswers) -> None:
    text = told("pod/slice", of_cluster(node("n", 8, labels=H100)), pod("t/busy", 1, on="n"), asks_slice())
    assert "End the pods on the GPUs of n (t/busy), then change its MIG layout to all-3g.40gb." in text


def test_a_model_without_the_profile_gets_no_layout(told: WhyAnswers) -> None:
    labels = {**H100, "nvidia.com/gpu.product": "NVIDIA-L40S", "nvidia.com/mig.capable": "false"}
    assert "mig.config" not in told("pod/slice", of_cluster(node("n", 8, labels=labels)), asks_slice())


def test_whole_gpus_come_back_where_all_are_divided(told: WhyAnswers) -> None:
    divided = node("n", 0, labels={**H100, "nvidia.com/mig.config": "all-1g.10gb"})
    divided["status"]["allocatable"]["nvidia.com/mig-1g.10gb"] = 56
    text = told("pod/whole", of_cluster(divided), pod("t/whole", 8))
    assert "kubectl label node n nvidia.com/mig.config=all-disabled --overwrite" in text


def test_strategy_single_has_another_resource_name(told: WhyAnswers) -> None:
    single = {
        **H100,
        "nvidia.com/mig.strategy": "single",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb",
    }
    text = told("pod/slice", node("n", 16, labels=single), asks_slice())
    assert "Node n has MIG strategy single" in text.replace("node n has", "Node n has")
    assert "Request nvidia.com/gpu: 1 instead of nvidia.com/mig-3g.40gb" in text
    assert "nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3-MIG-3g.40gb" in text


# -- MIG profiles that no model offers -----------------------------------------------------------------------------


A100 = {**H100, "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
OFFERED = "offers 1g.10gb, 1g.10gb.me, 1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb, 7g.80gb"


def asks(profile: str, name: str = "t/wrong", **spec: Any) -> Object:
    return pod(name, limits={f"nvidia.com/mig-{profile}": 1}, **spec)


@pytest.mark.parametrize("profile", ["3g.40g", "3g40gb", "3g.40GB", "3G.40gb", "3g40", "3g-40gb"])
def test_a_text_that_is_almost_a_profile_is_named_with_the_profile_that_it_resembles(
    told: WhyAnswers, profile: str
) -> None:
    text = told("pod/wrong", of_cluster(node("n", 8, labels=A100)), asks(profile))
    assert f"offers the MIG profile {profile}; did you mean 3g.40gb?" in text
    assert f"rename nvidia.com/mig-{profile} to nvidia.com/mig-3g.40gb" in text


@pytest.mark.parametrize("profile", ["3g.30gb", "3g.20gb"])
def test_a_profile_that_no_model_offers_is_named_with_the_nearest_of_as_many_slices(
    told: WhyAnswers, profile: str
) -> None:
    waits = asks(profile)
    text = told("pod/wrong", of_cluster(node("n", 8, labels=A100)), waits)
    assert f"offers the MIG profile {profile}; did you mean 3g.40gb? NVIDIA-A100-SXM4-80GB {OFFERED}" in text
    assert "The nearest node is n: with the change below, it takes the pod." in text
    assert f"rename nvidia.com/mig-{profile} to nvidia.com/mig-3g.40gb" in text
    assert "Then: Change the MIG layout of node n to all-3g.40gb: no pod uses its GPUs." in text
    (remedy,) = told.document("pod/wrong", of_cluster(node("n", 8, labels=A100)), waits)["remedies"]
    replace, relabel = remedy["commands"]
    assert replace.startswith("kubectl get pod wrong -n t -o yaml | kubectl patch -f -")
    assert f"nvidia.com~1mig-{profile}" in replace
    assert relabel == "kubectl label node n nvidia.com/mig.config=all-3g.40gb --overwrite"


def test_the_corrected_profile_alone_is_enough_where_nodes_have_it(told: WhyAnswers) -> None:
    divided = of_cluster(node("n", 0, labels={**A100, "nvidia.com/mig.config": "all-3g.40gb"}))
    divided["status"]["allocatable"][SLICE] = 2
    whole = of_cluster(node("a", 8, labels={**A100, "nvidia.com/mig.capable": "false"}))
    text = told("pod/wrong", whole, divided, asks("3g.30gb"))
    assert "would help In pod t/wrong" in text
    assert "The nearest node is n: with the change below, it takes the pod." in text
    assert "Two changes" not in text


def test_only_models_of_nodes_that_may_take_the_pod_count_and_all_are_listed(told: WhyAnswers) -> None:
    other = {**H100, "nvidia.com/gpu.product": "NVIDIA-H200"}
    nodes = [of_cluster(node("a", 8, labels=A100)), of_cluster(node("b", 8, labels=other))]
    on_a100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    text = told("pod/wrong", *nodes, asks("3g.71gb", nodeSelector=on_a100))
    assert "did you mean 3g.40gb?" in text
    assert "NVIDIA-H200 offers" in text
    assert "The nearest node is a:" in text
    assert "did you mean" not in told("pod/wrong", *nodes, asks("3g.71gb"))


def test_a_corrected_profile_without_a_place_is_named_and_no_remedy(told: WhyAnswers) -> None:
    full = of_cluster(node("n", 8, labels={**A100, "nvidia.com/mig.capable": "false"}))
    text = told("pod/wrong", full, asks("3g.30gb"))
    assert "the MIG profile 3g.30gb; with 3g.40gb instead it would wait as well" in text
    assert "did you mean" not in text
    assert "would help" not in text
    assert "did you mean" not in told("pod/wrong", full, asks("9g.30gb"))
