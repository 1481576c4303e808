"""Who one is and what one may: whoami, can-i, reconcile, and users beside the administrator under RBAC."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from build.cluster_server import ServerProcess
from build.kubectl_runs import Kubectl
from shoal.embedded.apiserver.security.authority import open_authority


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A cluster that enforces RBAC."""
    started = ServerProcess(tmp_path_factory.mktemp("guarded"), "--authorization", "rbac")
    yield started
    started.stop()


@pytest.fixture
def admin(guarded: ServerProcess, kubectl: Kubectl) -> Kubectl:
    by_admin = kubectl.by(guarded.kubeconfig)
    by_admin("create", "namespace", kubectl.namespace)
    return by_admin


def as_user(admin: Kubectl, user: dict[str, str], path: Path) -> Kubectl:
    """The administrator's kubeconfig with other credentials."""
    config = yaml.safe_load(admin.kubeconfig.read_text())
    config["users"][0]["user"] = user
    path.write_text(yaml.safe_dump(config))
    return admin.by(path)


def test_whoami_knows_the_administrator_and_whom_one_plays(kubectl: Kubectl) -> None:
    told = kubectl("auth", "whoami")
    assert "kubernetes-admin" in told
    assert "system:masters" in told
    played = kubectl("auth", "whoami", "--as=ann", "--as-group=staff", "-o", "jsonpath={.status.userInfo}")
    assert played == '{"groups":["staff","system:authenticated"],"username":"ann"}'


def test_the_administrator_may_do_everything(kubectl: Kubectl, admin: Kubectl) -> None:
    for one in (kubectl, admin):
        assert one("auth", "can-i", "*", "*") == "yes\n"
        listed = [line.split() for line in one("auth", "can-i", "--list").splitlines()]
        assert ["*.*", "[]", "[]", "[*]"] in listed


def test_a_user_may_what_a_role_gives_and_nothing_else(admin: Kubectl) -> None:
    refusal = admin.refused("get", "pods", "--as=ann")
    assert refusal == (
        'Error from server (Forbidden): pods is forbidden: User "ann" cannot list resource "pods" '
        f'in API group "" in the namespace "{admin.namespace}"'
    )
    admin("create", "role", "reader", "--verb=get,list", "--resource=pods")
    admin("create", "rolebinding", "readers", "--role=reader", "--user=ann")
    assert admin.names("pods", "--as=ann") == []
    assert admin("auth", "can-i", "list", "pods", "--as=ann") == "yes\n"
    denied = admin.run("auth", "can-i", "delete", "pods", "--as=ann")
    assert (denied.code, denied.out) == (1, "no\n")
    assert admin.run("auth", "can-i", "list", "pods", "--as=ann", "-n", "default").code == 1
    listed = [line.split() for line in admin("auth", "can-i", "--list", "--as=ann").splitlines()]
    assert ["pods", "[]", "[]", "[get", "list]"] in listed


def test_a_service_account_comes_in_with_its_token(admin: Kubectl, tmp_path: Path) -> None:
    admin("create", "serviceaccount", "bot")
    admin("create", "rolebinding", "bot-views", "--clusterrole=view", f"--serviceaccount={admin.namespace}:bot")
    bot = as_user(admin, {"token": admin("create", "token", "bot")}, tmp_path / "bot")
    assert f"system:serviceaccount:{admin.namespace}:bot" in bot("auth", "whoami")
    assert bot.names("configmaps") == ["configmap/kube-root-ca.crt"]
    assert "cannot create resource" in bot.refused("create", "configmap", "a")
    assert "cannot list resource" in bot.refused("get", "secrets")
    admin("delete", "serviceaccount", "bot")
    assert "Unauthorized" in bot.refused("get", "configmaps")


def test_a_made_up_token_is_not_let_in(admin: Kubectl, tmp_path: Path) -> None:
    assert "Unauthorized" in as_user(admin, {"token": "made-up"}, tmp_path / "stranger").refused("get", "pods")


def test_a_certificate_of_the_clusters_authority_lets_its_user_in(
    admin: Kubectl, guarded: ServerProcess, tmp_path: Path
) -> None:
    admin("create", "clusterrolebinding", "bob-edits", "--clusterrole=edit", "--user=bob")
    now = datetime.now(UTC)  # noqa: TID251 - certificates want the date
    pair = open_authority(guarded.folder / "state" / "keys", now).client("bob", ["staff"], now)
    data = {"client-certificate-data": pair.certificate, "client-key-data": pair.key}
    bob = as_user(admin, {key: b64encode(value).decode() for key, value in data.items()}, tmp_path / "bob")
    assert "bob" in bob("auth", "whoami")
    bob("create", "configmap", "a")
    assert "cannot list resource" in bob.refused("get", "nodes")


def test_nobody_gives_away_more_than_they_have(admin: Kubectl) -> None:
    admin("create", "rolebinding", "ann-admin", "--clusterrole=admin", "--user=ann")
    told = admin("create", "role", "reader", "--verb=get", "--resource=pods", "--as=ann")
    assert told == "role.rbac.authorization.k8s.io/reader created\n"
    refusal = admin.refused("create", "role", "giver", "--verb=*", "--resource=nodes", "--as=ann")
    assert "is attempting to grant RBAC permissions not currently held" in refusal


def test_reconcile_adds_what_is_missing_and_keeps_what_is_more(kubectl: Kubectl) -> None:
    kubectl("create", "role", "reader", "--verb=get", "--resource=pods")
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
    metadata = {"name": "reader", "namespace": kubectl.namespace}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    told = kubectl("auth", "reconcile", "-f-", given=role)
    assert told.startswith("role.rbac.authorization.k8s.io/reader reconciled\n")
    held = {(rule["resources"][0], rule["verbs"][0]) for rule in kubectl.get("role", "reader")["rules"]}
    assert held == {("pods", "get"), ("configmaps", "list")}
