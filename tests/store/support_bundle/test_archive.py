"""The archive keeps its limit, names what does not fit, and is the same for the same files."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from typing import Any

from shoal.store.support_bundle.archive import BundleArchive


def _opened(archive: BundleArchive) -> tuple[list[tarfile.TarInfo], Any]:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(archive.packed()))) as tar:
        infos = tar.getmembers()
        file = tar.extractfile("bundle/contents.json")
        assert file is not None
        return infos, json.load(file)


def test_what_does_not_fit_is_named() -> None:
    archive = BundleArchive("bundle", 10, 1_700_000_000)
    assert archive.add("a", b"12345678")
    assert not archive.add("b", b"123")
    assert archive.add("c", b"12")
    infos, contents = _opened(archive)
    assert [info.name for info in infos] == ["bundle/contents.json", "bundle/a", "bundle/c"]
    assert contents["files"] == {"a": 8, "c": 2}
    assert [one["name"] for one in contents["leftOut"]] == ["b"]


def test_no_file_is_readable_by_others() -> None:
    archive = BundleArchive("bundle", 10, 1_700_000_000)
    archive.add("a", b"1")
    infos, _ = _opened(archive)
    assert {info.mode for info in infos} == {0o600}


def test_equal_files_give_equal_bytes() -> None:
    packed = set()
    for _ in range(2):
        archive = BundleArchive("bundle", 100, 1_700_000_000)
        archive.add_json("a.json", {"x": [1, 2]})
        packed.add(archive.packed())
    assert len(packed) == 1
