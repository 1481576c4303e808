"""A binding brings annotations with it: what they ask for of GPUs is charged like what any other write asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.in_process import InProcess, in_process

NS = "/api/v1/namespaces/default"
GPU = "requests.nvidia.com/gpu"


def sharing(devices: int) -> dict[str, str]:
    return {"gpu-fraction": "0.5", "gpu-fraction-num-devices": str(devices)}


def bound_to_node(annotations: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "p", "annotations": annotations}, "target": {"kind": "Node", "name": "n"}}


async def used(door: InProcess) -> str:
    quota = (await door.ask("GET", f"{NS}/resourcequotas/q")).body
    return str(quota["status"]["used"][GPU])


@pytest.mark.parametrize("path", ["pods/p/binding", "bindings"])
@pytest.mark.parametrize("query", ["", "?dryRun=All"])
async def test_a_binding_is_held_against_the_quota(tmp_path: Path, path: str, query: str) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    async with in_process(tmp_path) as door:
        quota = {"metadata": {"name": "q"}, "spec": {"hard": {GPU: "4"}}}
        assert (await door.ask("POST", f"{NS}/resourcequotas", quota)).code == 201
        assert (await door.ask("POST", f"{NS}/pods", pod)).code == 201
        refused = await door.ask("POST", f"{NS}/{path}{query}", bound_to_node(sharing(5)))
        assert refused.code == 403
        assert "exceeded quota: q, requested: requests.nvidia.com/gpu=5" in refused.body["message"]
        assert (await door.ask("POST", f"{NS}/{path}{query}", bound_to_node(sharing(4)))).code == 201
        assert await used(door) == ("0" if query else "4")
