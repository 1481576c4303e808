"""Subjects are found by name, by part, and in the tables of hardware."""

from __future__ import annotations

import pytest

from shoal.data.subjects import subjects
from shoal.views.explained_subjects import explained, similar_subjects


def found(text: str) -> list[str]:
    return [each.subject for each in explained(text)]


def test_each_name_of_the_list_explains_its_own_paragraph() -> None:
    for subject in subjects():
        for name in subject.names:
            assert subject.text in [each.text for each in explained(name.upper())], name


def test_no_two_paragraphs_are_equal_and_none_is_longer_than_a_screen() -> None:
    texts = [subject.text for subject in subjects()]
    assert len(set(texts)) == len(texts)
    assert max(len(text) for text in texts) < 700


def test_a_whole_line_of_a_log_finds_the_error_within() -> None:
    line = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 79.10 GiB total)"
    assert found(line)[0].startswith("CUDA out of memory")


@pytest.mark.parametrize("text", ["48", "xid 48", "Xid: 48"])
def test_numbers_of_xid_errors_are_found_in_the_table(text: str) -> None:
    assert found(text) == ["Xid 48"]
    assert "Double Bit ECC Error" in explained(text)[0].text


def test_profiles_models_and_instances_are_read_from_the_tables() -> None:
    assert "19968 MiB" in explained("nvidia.com/mig-3g.20gb")[0].text
    assert found("H100") == ["H100-SXM5-80GB", "H100-PCIe-80GB", "H100-NVL-94GB"]
    assert found("NVIDIA-H100-80GB-HBM3") == ["H100-SXM5-80GB"]
    assert "8 x H100" in explained("p5.48xlarge")[0].text
    assert "(list of 20" in explained("p5.48xlarge")[0].text


@pytest.mark.parametrize("text", ["", "x", "zz", "777777", "no such thing at all, I believe"])
def test_what_is_unknown_or_too_short_finds_nothing(text: str) -> None:
    assert found(text) == []


def test_a_misspelled_subject_has_a_neighbour() -> None:
    assert "MIG" in similar_subjects("MIGG")


@pytest.mark.parametrize(
    "subject",
    [
        *(
            "HAMi",
            "taint",
            "toleration",
            "ResourceClaim",
            "DeviceClass",
            "PodGroup",
            "Workload",
            "PyTorchJob",
            "JobSet",
        ),
        *("LeaderWorkerSet", "TTFT", "vLLM", "IMEX", "QuotaReserved", "ECC", "amd.com/gpu", "CapacityBuffer"),
        *(
            "ProvisioningRequest",
            "kueue_pending_workloads",
            "shoal_node_scaling_nodes",
            "FP8",
            "Evicted",
            "tensor-parallel",
        ),
    ],
)
def test_usual_terms_of_gpu_clusters_have_a_paragraph(subject: str) -> None:
    (one,) = explained(subject)
    assert len(one.text.split()) > 5


def test_a_series_of_a_histogram_has_the_paragraph_of_the_histogram() -> None:
    assert explained("kueue_admission_wait_time_seconds_bucket") == explained("kueue_admission_wait_time_seconds")
    assert explained("kueue_admission_wait_time_seconds")
