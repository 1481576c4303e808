"""What a diagnosis reads is written into a bundle without secrets, and read back as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from build.diagnosed_clusters import gpu_node, running, waiting, written_bundle
from shoal.policy.kinds import EVENT
from shoal.policy.kinds import NODE as NODE_KIND
from shoal.store.diagnosed_objects import DiagnosedObjects
from shoal.store.support_bundle.archive import BundleArchive
from shoal.store.support_bundle.diagnosed_file import DIAGNOSED, read_diagnosed_file
from shoal.units.errors import UserError

PLANTED = "PLANTEDzq8vK2mPx9LtR4wN"


def test_values_of_variables_and_former_configurations_are_notwritten_bundle(tmp_path: Path) -> None:
    pod = running("train")
    pod["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": PLANTED, "a": "b"}
    pod["metadata"]["annotations"]["tool.example/former"] = json.dumps({"env": [{"name": "HF", "value": PLANTED}]})
    pod["metadata"]["managedFields"] = [{"manager": PLANTED}]
    pod["spec"]["containers"][0] |= {
        "env": [{"name": "HF", "value": PLANTED}],
        "args": [f"--token={PLANTED}", "--api-key", PLANTED],
    }
    log = {"team/train": f"Authorization: Bearer {PLANTED}\n"}
    found, logs = read_diagnosed_file(written_bundle(tmp_path, DiagnosedObjects([pod]), log))
    assert PLANTED not in json.dumps([found.objects, logs])
    assert found.objects[0]["spec"]["containers"][0]["env"] == [{"name": "HF"}]
    assert found.objects[0]["metadata"]["annotations"] == {"a": "b"}
    assert pod["spec"]["containers"][0]["env"][0]["value"] == PLANTED


def test_what_could_not_be_read_is_not_ruled_out_later(tmp_path: Path) -> None:
    read = DiagnosedObjects([waiting(), gpu_node()], {NODE_KIND}, {EVENT: "events are forbidden"})
    found, _ = read_diagnosed_file(written_bundle(tmp_path, read, {}))
    assert (found.complete, found.unread) == ({NODE_KIND}, {EVENT: "events are forbidden"})


def test_a_file_that_is_no_bundle_or_an_older_one_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "x.tar.gz"
    wrong.write_bytes(b"\x1f\x8b nothing")
    with pytest.raises(UserError, match="is no bundle"):
        read_diagnosed_file(str(wrong))
    older = BundleArchive("shoal-bundle", 1 << 20, 0)
    older.add_json("doctor.json", {})
    wrong.write_bytes(older.packed())
    with pytest.raises(UserError, match=f"has no {DIAGNOSED}"):
        read_diagnosed_file(str(wrong))
    odd = BundleArchive("shoal-bundle", 1 << 20, 0)
    odd.add_json(DIAGNOSED, {"objects": 1})
    wrong.write_bytes(odd.packed())
    with pytest.raises(UserError, match="cannot be read"):
        read_diagnosed_file(str(wrong))
