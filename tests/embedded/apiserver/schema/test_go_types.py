"""The reader of Go's type tables, on the kubectl that tests run; and that what ships agrees with it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from build.kubectl import kubectl_binary
from shoal.data.kubernetes_schemas import definitions

TOOLS = Path(__file__).parents[4] / "tools"


@pytest.fixture
def go_types(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(TOOLS))
    yield importlib.import_module("go_types")
    sys.modules.pop("go_types", None)


@pytest.mark.slow
def test_the_types_of_a_pod_are_found_with_their_tags(go_types: Any) -> None:
    structs = go_types.Binary(Path(kubectl_binary())).structs()
    container = {field.name: field for field in structs["k8s.io/api/core/v1", "Container"].fields()}
    assert container["Ports"].tag("patchMergeKey") == "containerPort"
    assert container["Ports"].type.text == "[]v1.ContainerPort"
    assert container["SecurityContext"].type.kind == "pointer"
    assert container["Image"].tag("json") == "image,omitempty"
    volume = [field for field in structs["k8s.io/api/core/v1", "Volume"].fields() if field.is_embedded]
    assert [field.type.text for field in volume] == ["v1.VolumeSource"]
    shipped = definitions("1.36")["io.k8s.api.core.v1.Container"].fields
    assert {field.tag("json").partition(",")[0] for field in container.values()} >= shipped.keys()


def test_a_file_that_is_no_binary_is_refused(go_types: Any, tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text("#!/bin/sh\n")
    with pytest.raises(ValueError, match="no little-endian 64-bit ELF binary"):
        go_types.Binary(path)
