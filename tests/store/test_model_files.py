"""Language models are read from their folders without reading weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shoal.data.language_models import find_language_model
from shoal.store.model_files import read_language_model
from shoal.units.errors import UserError

MISTRAL: dict[str, Any] = {
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 32768,
    "torch_dtype": "bfloat16",
    "architectures": ["MistralForCausalLM"],
}


def folder(path: Path, **fields: Any) -> Path:
    (path / "config.json").write_text(json.dumps({**MISTRAL, **fields}))
    return path


def tensors(path: Path, name: str, **shapes: list[int]) -> None:
    header = {key: {"dtype": "BF16", "shape": shape, "data_offsets": [0, 0]} for key, shape in shapes.items()}
    data = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    (path / name).write_bytes(len(data).to_bytes(8, "little") + data)


def test_the_parameters_of_a_configuration_are_those_of_the_published_model(tmp_path: Path) -> None:
    known = find_language_model("Mistral-7B")
    assert known is not None
    read = read_language_model(folder(tmp_path))
    assert (read.parameters, read.cached_values, read.context, read.dtype) == (
        known.parameters,
        known.cached_values,
        known.context,
        "bf16",
    )


def test_a_mixture_of_experts_has_fewer_parameters_in_use(tmp_path: Path) -> None:
    known = find_language_model("Mixtral-8x7B")
    assert known is not None
    read = read_language_model(folder(tmp_path, num_local_experts=8, num_experts_per_tok=2))
    assert (read.parameters, read.used_parameters) == (known.parameters, known.used_parameters)


def test_tensors_of_the_files_are_counted_and_go_before_the_shapes_of_the_configuration(tmp_path: Path) -> None:
    folder(tmp_path)
    tensors(tmp_path, "model-00001-of-00002.safetensors", a=[10, 20], scalar=[])
    tensors(tmp_path, "model-00002-of-00002.safetensors", b=[3])
    assert read_language_model(tmp_path).parameters == 204
    assert read_language_model(tmp_path / "config.json").parameters == 204


@pytest.mark.parametrize(
    ("quantization", "dtype"),
    [
        ({"bits": 4, "quant_method": "awq"}, "int4"),
        ({"bits": 8, "quant_method": "gptq"}, "int8"),
        ({"load_in_8bit": True, "quant_method": "bitsandbytes"}, "int8"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"num_bits": 8, "type": "int"}}}},
            "int8",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"weights": {"num_bits": 8, "type": "float"}}},
            },
            "fp8",
        ),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {"num_bits": 4, "type": "int"}}}},
            "int4",
        ),
        ({"quant_method": "torchao"}, "bf16"),
    ],
)
def test_the_format_of_quantized_weights_is_read(tmp_path: Path, quantization: dict[str, Any], dtype: str) -> None:
    assert read_language_model(folder(tmp_path, quantization_config=quantization)).dtype == dtype


def test_the_language_part_of_a_model_of_several_kinds_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"text_config": MISTRAL, "vision_config": {}}))
    assert read_language_model(tmp_path).layers == 32


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"num_hidden_layers": -4}, "is not between"),
        ({"num_hidden_layers": 10**12}, "is not between"),
        ({"num_key_value_heads": 5}, "cannot be divided"),
        ({"vocab_size": "many"}, "vocab_size"),
    ],
)
def test_a_wrong_configuration_names_the_file_and_the_field(
    tmp_path: Path, change: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UserError, match=complaint) as raised:
        read_language_model(folder(tmp_path, **change))
    assert "config.json" in str(raised.value)


@pytest.mark.parametrize(
    "data", [b"", b"\xff" * 8, (10**9).to_bytes(8, "little") + b"{}", (4).to_bytes(8, "little") + b"[[[["]
)
def test_a_file_that_is_no_safetensors_file_is_an_error_of_the_user(tmp_path: Path, data: bytes) -> None:
    folder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(UserError, match=r"model\.safetensors"):
        read_language_model(tmp_path)


def test_a_folder_without_a_configuration_and_a_huge_configuration_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_language_model(tmp_path)
    (tmp_path / "config.json").write_bytes(b" " * (1 << 20) + b"{}")
    with pytest.raises(UserError, match="larger than 1 MiB"):
        read_language_model(tmp_path)


def test_packed_weights_are_not_counted_as_parameters(tmp_path: Path) -> None:
    known = find_language_model("Mistral-7B")
    assert known is not None
    folder(tmp_path, quantization_config={"bits": 4, "quant_method": "gptq"})
    tensors(tmp_path, "model.safetensors", qweight=[512, 4096])
    assert read_language_model(tmp_path).parameters == known.parameters


def test_a_file_with_the_whole_model_beside_its_parts_is_not_counted_twice(tmp_path: Path) -> None:
    folder(tmp_path)
    tensors(tmp_path, "model-00001-of-00001.safetensors", a=[10, 20])
    tensors(tmp_path, "consolidated.safetensors", a=[10, 20])
    assert read_language_model(tmp_path).parameters == 200


@pytest.mark.parametrize("shape", [[10**9] * 3, [1] * 100])
def test_an_impossible_shape_is_an_error_of_the_user(tmp_path: Path, shape: list[int]) -> None:
    folder(tmp_path)
    tensors(tmp_path, "model.safetensors", a=shape)
    with pytest.raises(UserError, match="impossible shape"):
        read_language_model(tmp_path)
