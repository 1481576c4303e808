"""Objects as they are written, in JSON and YAML, single or in lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.api.plain_objects import PlainObjects, read_plain_objects
from shoal.units.errors import UserError

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "unknown": 1}


def read(folder: Path, text: str, name: str = "a.yaml") -> PlainObjects:
    path = folder / name
    path.write_text(text)
    return read_plain_objects([str(path)])


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(POD),
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nunknown: 1\n",
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [POD]}),
        json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "p"}, "unknown": 1}]}),
        "{apiVersion: v1, kind: Pod, metadata: {name: p}, unknown: 1}",
    ],
)
def test_every_form_gives_the_same_object_with_all_of_its_fields(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, text)
    assert [one.obj for one in found.objects] == [POD]
    assert (found.others, found.errors) == ([], [])


def test_documents_are_counted_and_those_that_are_no_object_are_kept_apart(tmp_path: Path) -> None:
    found = read(tmp_path, f"{json.dumps(POD)}\n---\n- 1\n---\nkind: Pod\n")
    assert [one.where.document for one in found.objects] == [1]
    assert [(one.where.document, one.value) for one in found.others] == [(2, [1]), (3, {"kind": "Pod"})]


def test_a_file_that_cannot_be_read_does_not_end_the_reading(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_bytes(b"a: \xff\n")
    (tmp_path / "c.yaml").write_text("a: [\n")
    (tmp_path / "d.yaml").write_text(json.dumps(POD))
    found = read_plain_objects([str(tmp_path)])
    assert [Path(error.where.file).name for error in found.errors] == ["b.yaml", "c.yaml"]
    assert len(found.objects) == 1


def test_a_file_that_is_nested_too_deeply_is_an_error(tmp_path: Path) -> None:
    (error,) = read(tmp_path, '{"a":' * 100_000).errors
    assert "nested" in error.what or "deep" in error.what


def test_a_folder_without_manifests_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no file ending in"):
        read_plain_objects([str(tmp_path)])
