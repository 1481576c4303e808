"""Paths as people give them: what is read, in which order, and the one line when it cannot be."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from shoal.api.decode import meta_of
from shoal.api.files import read_manifests, read_whole
from shoal.units.errors import UserError

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n"


def write(folder: Path, name: str, *namespaces: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("---\n".join(NAMESPACE % each for each in namespaces), encoding="utf-8")
    return path


def names(*paths: Path | str) -> list[str]:
    return [document.value.metadata.name for document in read_manifests([str(path) for path in paths])]  # type: ignore[union-attr]


def test_a_folder_is_read_to_its_depths_in_the_order_of_names(tmp_path: Path) -> None:
    write(tmp_path, "b.yaml", "second", "third")
    write(tmp_path, "a.yml", "first")
    write(tmp_path, "c/d/e.json", "unused").write_text(
        '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "last"}}'
    )
    (tmp_path / "notes.txt").write_text("not: [a manifest")
    assert names(tmp_path) == ["first", "second", "third", "last"]


def test_files_are_read_in_the_order_given_whatever_their_ending(tmp_path: Path) -> None:
    assert names(write(tmp_path, "z.txt", "z"), write(tmp_path, "a.yaml", "a")) == ["z", "a"]


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((NAMESPACE % "piped").encode())))
    assert names("-") == ["piped"]


def test_an_object_in_two_files_is_refused_with_both_places(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "x")
    write(tmp_path, "b.yaml", "x")
    with pytest.raises(
        UserError, match=r"b.yaml: document 1 \(Namespace x\): metadata.name: is given twice; first in .*a.yaml"
    ):
        names(tmp_path)


WRONG = {
    "a path that is not there": ("gone.yaml", r"gone.yaml: cannot be read: No such file"),
    "a folder without manifests": ("empty", r"empty: holds no file ending in .yaml, .yml, .json"),
}


@pytest.mark.parametrize(("name", "complaint"), WRONG.values(), ids=WRONG)
def test_the_complaint_names_the_path(tmp_path: Path, name: str, complaint: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=complaint):
        names(tmp_path / name)


def test_all_files_together_stay_below_the_limit(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "first")
    write(tmp_path, "b.yaml", "second")
    with pytest.raises(UserError, match=r"b.yaml: is larger than"):
        read_manifests([str(tmp_path)], max_bytes=80)


def test_a_file_of_just_the_limit_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", "x")
    size = path.stat().st_size
    assert len(read_whole(path, size)) == size
    with pytest.raises(UserError, match="is larger than"):
        read_whole(path, size - 1)


# -- all errors of an input ------------------------------------------------------------------------------------

GOOD = "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n"
BAD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: seven}\n"


def test_every_error_of_all_files_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("---\n".join([GOOD % "one", BAD % "p", GOOD % "two", BAD % "q"]))
    (tmp_path / "b.yaml").write_text("kind: [broken\n")
    (tmp_path / "c.json").write_text('{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "three"}}')
    (tmp_path / "d.yaml").write_text("---\n".join([GOOD % "one", GOOD % "four"]))
    errors: list[UserError] = []
    paths = [str(tmp_path), str(tmp_path / "gone.yaml")]
    found = [meta_of(each.value).name for each in read_manifests(paths, report=errors.append)]
    assert found == ["one", "two", "three", "four"]
    assert [str(error.where).removeprefix(f"{tmp_path}/") for error in errors] == [
        "a.yaml: document 2 (Pod default/p): spec.containers",
        "a.yaml: document 4 (Pod default/q): spec.containers",
        "b.yaml: document 1",
        "gone.yaml",
        "d.yaml: document 1 (Namespace one): metadata.name",
    ]


@pytest.mark.parametrize("name", ["list.json", "list.yaml"])
def test_an_invalid_item_of_a_list_does_not_hide_the_others(tmp_path: Path, name: str) -> None:
    items = [
        {"kind": "Namespace", "metadata": {"name": "one"}},
        {"kind": "Namespace", "metadata": {"name": 7}},
        {"kind": "Namespace", "metadata": {"name": "two"}},
    ]
    (tmp_path / name).write_text(json.dumps({"apiVersion": "v1", "kind": "NamespaceList", "items": items}))
    errors: list[UserError] = []
    found = [meta_of(each.value).name for each in read_manifests([str(tmp_path)], report=errors.append)]
    assert (found, len(errors)) == (["one", "two"], 1)
    assert "metadata.name" in str(errors[0])


def test_all_wrong_fields_of_one_object_are_reported(tmp_path: Path) -> None:
    containers = [
        {"name": "a", "resources": {"limits": {"nvidia.com/gpu": "1.5.2Gi", "cpu": "many"}}},
        {"name": 7, "resources": {}},
    ]
    wrong = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}}
    wrong["spec"] |= {"nodeName": 3, "tolerations": "all"}  # type: ignore[operator]
    (tmp_path / "pod.json").write_text(json.dumps(wrong))
    errors: list[UserError] = []
    assert read_manifests([str(tmp_path)], report=errors.append) == []
    assert sorted(error.where.path for error in errors) == [
        "spec.containers[0].resources.limits.cpu",
        "spec.containers[0].resources.limits[nvidia.com/gpu]",
        "spec.containers[1].name",
        "spec.nodeName",
        "spec.tolerations",
    ]


def test_a_required_field_that_is_wrong_is_reported_once(tmp_path: Path) -> None:
    wrong = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}, "value": "high"}
    (tmp_path / "class.json").write_text(json.dumps(wrong))
    errors: list[UserError] = []
    assert read_manifests([str(tmp_path)], report=errors.append) == []
    assert [str(error).partition("value: ")[2] for error in errors] == ['expected a whole number, got text ("high")']
