"""`shoal size` prints which GPUs hold a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from shoal.cli.main import main

NODE = """
apiVersion: v1
kind: Node
metadata: {name: a, labels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}
status:
  allocatable: {cpu: "64", memory: 512Gi, pods: "110", nvidia.com/gpu: "8"}
  conditions: [{type: Ready, status: "True"}]
"""

Size = Callable[..., tuple[int, str, str]]


@pytest.fixture
def size(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Size:
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["size", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_the_table_names_the_memory_the_gpus_and_what_was_assumed(size: Size) -> None:
    code, out, _ = size("mistralai/Mistral-7B", "--gpu", "A100-SXM4-80GB")
    assert code == 0
    assert out.startswith("Mistral-7B, 7.24 billion parameters in bf16: 16.3 GB to serve it (14.5 GB weights, ")
    assert "1 x A100-SXM4-80GB" in out
    assert "assumed: --context is not given: 8192 tokens" in out
    assert "-o wide" not in out


def test_free_gpus_of_the_nodes_of_a_file_are_counted_by_groups(size: Size, tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text(NODE)
    file = str(tmp_path / "node.yaml")
    code, out, _ = size("Llama-3.1-70B", "--gpu", "H100-SXM5-80GB", "--gpu", "L4", "-f", file, "-o", "json")
    assert code == 0
    found = {(fit["gpu"], fit["gpus"]): fit["placesFree"] for fit in json.loads(out)["fits"]}
    assert found[("H100-SXM5-80GB", 2)] == 4
    assert [count for (gpu, _), count in found.items() if gpu == "L4"] == [0]


def test_a_model_that_no_group_holds_ends_with_1_and_says_so(size: Size) -> None:
    code, out, _ = size("Llama-3.1-405B", "--train", "full", "--dtype", "fp16", "--gpu", "T4")
    assert code == 1
    assert "T4: no group of its GPUs holds the model; --train fsdp divides it among GPUs" in out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "no model is given; name a model or a folder, or give --params"),
        (("mistal-7b",), 'model "mistal-7b" is not known; did you mean'),
        (("--params", "7e9", "--gpu", "H10000"), 'GPU "H10000" is not known'),
        (("Mistral-7B", "--dtype", "int3"), '"int3" is not a format'),
        (("Mistral-7B", "--train", "loar"), 'kind of training "loar" not found; did you mean lora?'),
    ],
)
def test_wrong_input_ends_with_2_and_one_line(size: Size, arguments: tuple[str, ...], complaint: str) -> None:
    code, out, err = size(*arguments)
    assert (code, out) == (2, "")
    assert complaint in err
    assert len(err.splitlines()) == 1


def test_a_size_alone_takes_the_shape_of_the_nearest_model_and_says_so(size: Size) -> None:
    code, out, _ = size("--params", "70e9", "--concurrency", "32")
    assert code == 0
    assert "those of Llama-3.1-70B, the nearest in size" in out
    assert "and 15 more" in out


def test_a_family_stands_for_all_of_its_models_and_a_prefix_is_suggested(size: Size) -> None:
    code, out, _ = size("Llama-3.1-8B", "--gpu", "a100", "-o", "json")
    assert code == 0
    assert {fit["gpu"] for fit in json.loads(out)["fits"]} == {
        *("A100-SXM4-40GB", "A100-PCIe-40GB", "A100-SXM4-80GB", "A100-PCIe-80GB"),
    }
    code, _, err = size("Llama-3.1-8B", "--gpu", "A100-SXM")
    assert code == 2
    assert 'GPU "A100-SXM" is not known; did you mean A100-SXM4-40GB, A100-SXM4-80GB?' in err


def test_a_gpu_without_the_format_is_left_out_and_the_reason_is_in_the_document(size: Size) -> None:
    code, out, _ = size("Llama-3.1-8B", "--dtype", "fp8", "--gpu", "T4", "--gpu", "L4", "-o", "json")
    assert code == 0
    document = json.loads(out)
    assert [fit["gpu"] for fit in document["fits"]] == ["L4"]
    assert document["reasons"] == {"T4": "it does not compute in fp8; --dtype int8 has the same size"}
