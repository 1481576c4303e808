"""`shoal tenant` isolates teams on a server with RBAC; attempts with a tenant's credentials show that it does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from build.cluster_server import ServerProcess
from shoal.cli.main import main

TEAM = """
apiVersion: shoal.dev/v1alpha1
kind: Team
metadata: {name: team-a}
spec:
  quota: {gpus: 8, cpu: 64, memory: 512Gi}
  members: {admins: ["user:ann"], developers: [a-devs], viewers: [all]}
  budgetPerMonth: 20000
---
apiVersion: shoal.dev/v1alpha1
kind: Team
metadata: {name: team-b}
spec: {quota: {gpus: 4}, members: {developers: [b-devs]}}
"""
BOB = ("--as", "bob", "--as-group", "a-devs", "--as-group", "system:authenticated")
_NEEDS_ADMISSION = {"visible-devices", "runtime-class"}
"""What RBAC, quotas and Pod Security cannot refuse."""


class Tenants:
    def __init__(self, kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._where = ("--kubeconfig", str(kubeconfig))
        self._capsys = capsys
        self.err = ""

    def run(self, *arguments: str, code: int = 0) -> str:
        self._capsys.readouterr()
        found = main(["tenant", *arguments, *self._where])
        out, self.err = self._capsys.readouterr()
        assert found == code, self.err + out
        return out

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.run(*arguments, "-o", "json", code=code))

    def team(self, name: str) -> Any:
        return next(row for row in self.json("list")["teams"] if row["team"] == name)

    def rows(self, *arguments: str, code: int) -> dict[str, Any]:
        return {row["id"]: row for row in self.json("check", *arguments, code=code)["rows"]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("tenants")
    process = ServerProcess(folder, "--nodes", "none", "--authorization", "rbac", is_bare=False)
    (folder / "teams.yaml").write_text(TEAM)
    try:
        assert main(["tenant", "apply", str(folder / "teams.yaml"), "--kubeconfig", str(process.kubeconfig)]) == 0
        yield process
    finally:
        process.stop()


@pytest.fixture
def tenants(server: ServerProcess, capsys: pytest.CaptureFixture[str]) -> Tenants:
    return Tenants(server.kubeconfig, capsys)


def test_applying_again_changes_nothing(server: ServerProcess, tenants: Tenants) -> None:
    out = tenants.run("apply", str(server.folder / "teams.yaml"))
    assert [line for line in out.splitlines() if not line.endswith("unchanged")] == []


@pytest.mark.parametrize("role", ["developer", "admin"])
def test_members_cannot_leave_their_team(role: str, tenants: Tenants) -> None:
    rows = tenants.rows("team-a", "--role", role, code=1)
    wrong = {name for name, row in rows.items() if row["state"] not in ("refused", "allowed")}
    assert wrong <= _NEEDS_ADMISSION
    assert rows["read-secrets-team-b"]["state"] == "refused"
    assert rows["create-gpu-pod"]["state"] == "allowed"
    assert "violates PodSecurity" in rows["privileged"]["evidence"]
    assert "exceeded quota: team-quota" in rows["too-many-gpus"]["evidence"]
    assert "exceeded quota: team-denied-priorities" in rows["system-priority"]["evidence"]
    assert rows["network-to-team-b"]["state"] == "refused"


def test_an_account_of_the_team_is_isolated_with_its_own_token(server: ServerProcess, tenants: Tenants) -> None:
    rows = tenants.rows("team-a", "--account", "default", code=0)
    assert rows["read-secrets-team-b"]["state"] == "refused"
    assert "system:serviceaccount:team-a:default" in rows["read-secrets-team-b"]["evidence"]
    # The account may create no pod, so that this says nothing about Pod Security.
    assert rows["privileged"]["state"] == "not run"
    assert server.process.poll() is None


def test_a_hole_is_found(server: ServerProcess, tenants: Tenants, tmp_path: Path) -> None:
    tenants.run("apply", "team-hole", "--gpus", "1", "--developer", "h-devs")
    _relabel(server, "team-hole")
    rows = tenants.rows("team-hole", code=1)
    assert rows["privileged"]["state"] == "open"
    assert rows["privileged"]["fix"]
    tenants.run("delete", "team-hole")


def _create_namespace(server: ServerProcess, name: str) -> None:
    import asyncio

    from build.cluster_api import Api

    async def work() -> None:
        async with Api.open(server.kubeconfig) as api:
            obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            (await api.post("/api/v1/namespaces", obj)).ok(201)

    asyncio.run(work())


def _relabel(server: ServerProcess, namespace: str) -> None:
    import asyncio

    from build.cluster_api import Api

    async def work() -> None:
        async with Api.open(server.kubeconfig) as api:
            labels = {"pod-security.kubernetes.io/enforce": "privileged"}
            (await api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}})).ok()

    asyncio.run(work())


def test_more_quota_is_asked_for_granted_and_ends(server: ServerProcess, tenants: Tenants) -> None:
    told = tenants.run("request", "team-a", "--gpus", "24", "--for", "1ms", "--reason", "paper", *BOB)
    name = told.partition(":")[0]
    assert tenants.team("team-a")["openRequests"] == 1
    tenants.run("approve", "team-a", name, "--for", "7d", *BOB, code=1)
    assert 'User "bob" cannot patch resource "resourcequotas"' in tenants.err
    tenants.run("approve", "team-a", name, code=2)
    assert "give a time that is to come" in tenants.err
    tenants.run("approve", "team-a", name, "--for", "7d")
    row = tenants.team("team-a")
    assert row["devices"] == {"nvidia.com/gpu": "0/24"}
    assert row["grantedUntil"] > "2026"
    assert tenants.json("requests")["requests"][0]["state"] == "granted"
    tenants.run("approve", "team-a", name, code=2)
    assert "is decided already" in tenants.err
    # A grant that is in force stays when the team is applied again.
    tenants.run("apply", str(server.folder / "teams.yaml"))
    assert tenants.team("team-a")["devices"] == {"nvidia.com/gpu": "0/24"}
    assert tenants.run("expire") == "no grant is over\n"


def test_a_denied_request_changes_nothing(tenants: Tenants) -> None:
    name = tenants.run("request", "team-b", "--gpus", "9").partition(":")[0]
    tenants.run("deny", "team-b", name, "--reason", "no")
    assert tenants.team("team-b")["devices"] == {"nvidia.com/gpu": "0/4"}
    assert tenants.team("team-b")["openRequests"] == 0


def test_a_namespace_of_others_is_taken_on_request_only(server: ServerProcess, tenants: Tenants) -> None:
    _create_namespace(server, "lab")
    tenants.run("apply", "lab", "--gpus", "1", code=2)
    assert "Namespace lab: exists already; use another name, or add --adopt" in tenants.err
    assert "NetworkPolicy lab/default-deny created" in tenants.run("apply", "lab", "--gpus", "1", "--adopt")
    tenants.run("delete", "lab")


def test_a_dry_run_keeps_nothing(tenants: Tenants) -> None:
    assert "Namespace team-d created (server dry run)" in tenants.run("apply", "team-d", "--gpus", "1", "--dry-run")
    tenants.run("check", "team-d", code=2)
    tenants.run("apply", "team-c", "--gpus", "1")
    tenants.run("delete", "team-c", "--dry-run")
    assert tenants.team("team-c")
    tenants.run("delete", "team-c")
    tenants.run("delete", "team-c", code=2)
    assert "there is no team team-c" in tenants.err


def test_the_budgets_are_a_part_of_a_price_file(tenants: Tenants) -> None:
    from shoal.cost.prices.price_file import read_price_file

    found = read_price_file(msgspec.yaml.decode(tenants.run("list", "-o", "budgets")), "")
    assert [(one.team, str(one.per_month)) for one in found.budgets] == [("team-a", "20000")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("apply", "none.yaml"), "No such file"),
        (("apply", "x", "--resource", "gpu"), "is no amount of a device"),
        (("request", "team-a", "--resource", "limits.nvidia.com/gpu=9"), "is no amount of a device"),
        (("apply", "teams.yaml", "--gpus", "4"), "is not for files"),
        (("apply", "kube-system"), "belongs to the cluster"),
        (("request", "team-a"), "give --gpus or --resource"),
        (("request", "team-a", "--gpus", "1", "--for", "soon"), "as in 12h or 7d"),
        (("check", "team-a", "--role", "developr"), "developer"),
        (("check", "team-b", "--role", "viewer"), "has no member with the role viewer"),
        (("check", "team-x"), "there is no team team-x"),
    ],
)
def test_wrong_input_ends_with_2(arguments: tuple[str, ...], message: str, tenants: Tenants) -> None:
    tenants.run(*arguments, code=2)
    assert message in tenants.err


def test_objects_are_printed_without_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "team.yaml"
    path.write_text(TEAM)
    missing = ("--kubeconfig", str(tmp_path / "none"))
    assert main(["tenant", "apply", str(path), "-o", "json", *missing]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert {item["metadata"].get("namespace") for item in items} == {None, "team-a", "team-b"}
    assert main(["tenant", "apply", str(path), "-o", "yaml", *missing]) == 0
    text = capsys.readouterr().out
    assert len([part for part in text.split("---\n") if part.strip()]) == len(items)
