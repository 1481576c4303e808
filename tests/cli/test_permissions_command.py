"""`shoal permissions` and `shoal crds`: objects that can be piped to kubectl as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from build.ruled_clusters import ruled_cluster
from shoal.cli.main import main
from shoal.cli.run import CloudName
from shoal.client.kind import DEFINITIONS
from shoal.data.permissions import BY_DEFAULT, WITH_CLOUD

Obj = dict[str, Any]


def _printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[Obj]:
    assert main(arguments) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


def test_a_role_for_each_part_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    objects = _printed(capsys, "permissions", "--controllers", "queues,scheduler", "-n", "team")
    roles = [one["metadata"]["name"] for one in objects if one["kind"] == "ClusterRole"]
    assert roles == ["shoal", "shoal-queues", "shoal-scheduler"]
    assert {one["subjects"][0]["namespace"] for one in objects if one["kind"].endswith("Binding")} == {"team"}


@pytest.mark.parametrize(
    ("cloud", "wanted"),
    [
        ("cluster-api", {"machinedeployments", "machinepools", "machines"}),
        ("external-grpc", {"configmaps"}),
        ("aws", set()),
        ("", set()),
    ],
)
def test_rights_on_machines_are_those_of_the_cloud_that_is_used(
    cloud: str, wanted: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ("--cloud", cloud) if cloud else ()
    objects = _printed(capsys, "permissions", "--controllers", "node-scaling", *chosen)
    granted = {name for one in objects for rule in one.get("rules", ()) for name in rule["resources"]}
    of_clouds = {"machinedeployments", "machinepools", "machines", "configmaps"}
    assert granted & of_clouds == wanted
    bound = {one["roleRef"]["name"] for one in objects if one["kind"] == "ClusterRoleBinding"}
    assert bound == {one["metadata"]["name"] for one in objects if one["kind"] == "ClusterRole"}


def test_the_names_of_clouds_are_those_of_shoal_run() -> None:
    assert set(WITH_CLOUD) == {each.value for each in CloudName}


def test_by_default_all_parts(capsys: pytest.CaptureFixture[str]) -> None:
    roles = {one["metadata"]["name"] for one in _printed(capsys, "permissions") if one["kind"] == "ClusterRole"}
    assert roles == {"shoal", *(f"shoal-{part}" for part in BY_DEFAULT)}


def test_a_user_instead_of_an_account(capsys: pytest.CaptureFixture[str]) -> None:
    objects = _printed(capsys, "permissions", "--user", "ann")
    assert "ServiceAccount" not in {one["kind"] for one in objects}
    subjects = [one["subjects"] for one in objects if one["kind"].endswith("Binding")]
    assert all(
        found == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}] for found in subjects
    )


def test_a_document_of_json_is_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["permissions", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "List"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("permissions", "--controllers", "scedule"), "did you mean scheduler?"),
        (("permissions", "-o", "yml"), "did you mean yaml?"),
        (("permissions", "--controllers", "node-scaling", "--cloud", "cluster"), "did you mean cluster-api?"),
        (("permissions", "--cloud", "aws"), "only node-scaling uses a cloud"),
        (("crds", "--project", "kueu"), "did you mean kueue?"),
    ],
)
def test_what_is_misspelt_is_told(arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


async def test_what_is_printed_is_taken_by_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    granted = _printed(capsys, "permissions")
    definitions = _printed(capsys, "crds", "--project", "kueue,jobset")
    async with ruled_cluster(tmp_path) as ruled:
        await ruled.apply(granted)
        await ruled.apply(granted)
        for definition in definitions:
            await ruled.cluster.create(DEFINITIONS, definition)
        there = {item.name for item in (await ruled.cluster.api.list(DEFINITIONS)).items}
    assert {"workloads.kueue.x-k8s.io", "jobsets.jobset.x-k8s.io"} <= there


def test_the_operator_has_a_lease_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["permissions", "--controllers", "operator", "-o", "json"]) == 0
    objects = json.loads(capsys.readouterr().out)["items"]
    role = next(one for one in objects if one["kind"] == "Role" and one["metadata"]["name"] == "shoal-election")
    assert [rule["resourceNames"] for rule in role["rules"] if "resourceNames" in rule] == [["shoal-operator"]]
