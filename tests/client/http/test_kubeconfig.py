"""Kubeconfig files: which of their contexts is meant, and one line for whatever is wrong with them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from shoal.client.http.kubeconfig import KubeconfigChoice, read_kubeconfig
from shoal.client.http.locate import context_names, locate
from shoal.units.errors import UserError

SERVER = "https://10.0.0.1:6443"
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "aws", "interactiveMode": "Never"}


def content(name: str = "one", **parts: Any) -> dict[str, Any]:
    """A file with one context of that name; `cluster`, `user` and `context` add to its entries."""
    context = {"cluster": name, "user": name, **parts.get("context", {})}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": parts.get("current", name),
        "clusters": [{"name": name, "cluster": {"server": SERVER, **parts.get("cluster", {})}}],
        "contexts": [{"name": name, "context": context}],
        "users": [{"name": name, "user": {"token": "secret", **parts.get("user", {})}}],
    }


def written(path: Path, said: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(said if isinstance(said, str) else yaml.safe_dump(said))
    return path


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_the_current_context_is_read(tmp_path: Path) -> None:
    file = written(tmp_path / "config", content(context={"namespace": "team-a"}))
    access = read_kubeconfig([file])
    assert (access.server, access.token, access.namespace) == (SERVER, "secret", "team-a")
    assert access.where == f'context "one" of {file}'


def test_what_is_printed_of_an_access_has_no_secrets(tmp_path: Path) -> None:
    access = read_kubeconfig([written(tmp_path / "config", content())])
    assert "secret" not in repr(access)
    assert SERVER in repr(access)


def test_of_several_files_the_first_that_says_a_thing_is_right(tmp_path: Path) -> None:
    first = written(tmp_path / "a", {"contexts": [{"name": "two", "context": {"cluster": "two", "user": "two"}}]})
    second = written(tmp_path / "b", content("two", context={"namespace": "not-this"}))
    third = written(tmp_path / "c", content("three"))
    files = [first, tmp_path / "none", second, third]
    assert read_kubeconfig(files).where == f'context "two" of {first}'
    assert read_kubeconfig(files).namespace == "default"
    assert read_kubeconfig(files, "three").where == f'context "three" of {third}'


def test_paths_start_at_the_file_they_stand_in(tmp_path: Path) -> None:
    written(tmp_path / "folder" / "ca.crt", "authority")
    written(tmp_path / "folder" / "me.crt", "certificate")
    written(tmp_path / "folder" / "me.key", "key")
    cluster = {"certificate-authority": "ca.crt"}
    user = {"client-certificate": "me.crt", "client-key": "me.key", "tokenFile": "token"}
    access = read_kubeconfig([written(tmp_path / "folder" / "config", content(cluster=cluster, user=user))])
    assert (access.authority, access.certificate, access.key) == ("authority", b"certificate", b"key")
    assert access.token_file == tmp_path / "folder" / "token"


def test_what_stands_in_the_file_goes_before_a_path(tmp_path: Path) -> None:
    cluster = {"certificate-authority": "none", "certificate-authority-data": encoded("inside")}
    access = read_kubeconfig([written(tmp_path / "config", content(cluster=cluster))])
    assert access.authority == "inside"


def test_impersonation_and_passwords_become_headers(tmp_path: Path) -> None:
    user = {"token": None, "username": "me", "password": "pass", "as": "you", "as-groups": ["a", "b"]}
    access = read_kubeconfig([written(tmp_path / "config", content(user=user))])
    assert access.headers == (
        ("Authorization", "Basic " + encoded("me:pass")),
        ("Impersonate-User", "you"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
    )


BROKEN: list[tuple[Any, list[str]]] = [
    ("clusters: [", ["this is not YAML (line 1)"]),
    ("just text", ["this is not a kubeconfig"]),
    ({"kind": "Pod"}, ["this is not a kubeconfig"]),
    ({"clusters": {"a": "b"}}, ["this is not a kubeconfig"]),
    ({"clusters": ["a"]}, ["clusters[0]", "this is not a cluster"]),
    ("", ["no context is current", "it has no contexts"]),
    (content(current=""), ["no context is current", "choose one of: one"]),
    (content(current="gone"), ['context "gone" not found', "choose one of: one"]),
    (content(context={"user": "gone"}), ["contexts[0].context", 'there is no user "gone"', "there is: one"]),
    (content(context={"cluster": "gone"}), ['there is no cluster "gone"']),
    (content(cluster={"server": "10.0.0.1"}), ["clusters[0].cluster.server", '"10.0.0.1" is not a URL']),
    (content(cluster={"server": "https://"}), ["is not a URL"]),
    (content(cluster={"server": None}), ["the server address is missing"]),
    (content(cluster={"server": 6443}), ["clusters[0].cluster", "server"]),
    (content(cluster={"proxy-url": "socks5://x"}), ["proxy-url", "not an http or https proxy"]),
    (content(cluster={"certificate-authority": "none"}), ["certificate-authority", '"none" cannot be read']),
    (content(cluster={"certificate-authority-data": "?"}), ["certificate-authority-data", "this is not base64"]),
    (
        content(cluster={"certificate-authority-data": encoded("x"), "insecure-skip-tls-verify": True}),
        ["exclude each other"],
    ),
    (content(user={"client-certificate-data": encoded("x")}), ["users[0].user", "there is no client-key"]),
    (content(user={"client-key-data": encoded("x")}), ["there is no client-certificate"]),
    (content(user={"exec": {"command": "aws"}}), ["users[0].user.exec", "apiVersion"]),
    (content(user={"exec": EXEC | {"apiVersion": "v1"}}), ['"v1" is not known; use client.authentication.k8s.io/v1']),
    (content(user={"exec": EXEC | {"interactiveMode": ""}}), ["interactiveMode is missing; say Never"]),
    (content(user={"exec": EXEC | {"interactiveMode": "Maybe"}}), ["users[0].user.exec", "Maybe"]),
    (
        content(user={"auth-provider": {"name": "gcp"}}),
        ["users[0].user.auth-provider", "not supported", "kubectl create token"],
    ),
]


@pytest.mark.parametrize(("said", "words"), BROKEN)
def test_what_is_wrong_is_one_line_that_names_file_entry_and_fault(tmp_path: Path, said: Any, words: list[str]) -> None:
    file = written(tmp_path / "config", said)
    with pytest.raises(UserError) as refused:
        read_kubeconfig([file])
    line = str(refused.value)
    assert [word for word in (str(file), *words) if word not in line] == [], line
    assert "secret" not in line


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        locate(tmp_path / "none", environment={})


def test_the_environment_names_files_then_the_usual_one_is_taken_then_the_pods(tmp_path: Path) -> None:
    account = tmp_path / "account"
    written(account / "token", "pod-token")
    written(account / "namespace", "team-a\n")
    written(account / "ca.crt", "authority")
    inside = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443", "HOME": str(tmp_path)}
    access = locate(environment=inside, service_account=account)
    assert (access.server, access.namespace, access.authority) == ("https://[fd00::1]:443", "team-a", "authority")
    assert access.token_file == account / "token"
    written(tmp_path / ".kube" / "config", content("usual"))
    assert '"usual"' in locate(environment=inside, service_account=account).where
    named = {**inside, "KUBECONFIG": f"{tmp_path / 'none'}:{written(tmp_path / 'named', content('named'))}"}
    assert '"named"' in locate(environment=named, service_account=account).where


def test_no_cluster_at_all_says_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no cluster is known; name a kubeconfig with --kubeconfig"):
        locate(environment={"HOME": str(tmp_path)}, service_account=tmp_path / "none")


def test_a_program_is_read_with_what_it_wants_to_know(tmp_path: Path) -> None:
    said = EXEC | {
        "command": "bin/aws",
        "args": ["get"],
        "env": [{"name": "A", "value": "b"}],
        "provideClusterInfo": True,
    }
    extensions = [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}, {"name": "other"}]
    file = written(
        tmp_path / "config", content(user={"exec": said}, cluster={"extensions": extensions, "tls-server-name": "k"})
    )
    program = read_kubeconfig([file]).program
    assert program is not None
    assert (program.command, program.arguments, program.mode) == (str(tmp_path / "bin/aws"), ("get",), "Never")
    assert program.environment == (("A", "b"),)
    assert program.cluster == {"server": SERVER, "tls-server-name": "k", "config": {"audience": "x"}}


def test_a_program_of_the_older_version_may_ask_if_there_is_a_terminal_and_is_told_nothing(tmp_path: Path) -> None:
    said = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "aws", "installHint": "brew it"}
    program = read_kubeconfig([written(tmp_path / "config", content(user={"exec": said}))]).program
    assert program is not None
    assert (program.command, program.mode, program.hint, program.cluster) == ("aws", "IfAvailable", "brew it", None)


def test_where_files_are_is_kept_so_that_they_can_be_read_again(tmp_path: Path) -> None:
    for name in ("cert", "key", "ca"):
        (tmp_path / name).write_text(name)
    user = {"client-certificate": "cert", "client-key": "key", "token": ""}
    access = read_kubeconfig(
        [written(tmp_path / "config", content(user=user, cluster={"certificate-authority": "ca"}))]
    )
    assert (access.certificate, access.key, access.authority) == (b"cert", b"key", "ca")
    assert (access.certificate_file, access.key_file) == (tmp_path / "cert", tmp_path / "key")
    assert access.authority_file == tmp_path / "ca"


@pytest.mark.parametrize(
    ("cluster", "compresses"),
    [({}, True), ({"disable-compression": True}, False), ({"server": "https://127.0.0.1:6443"}, False)],
    ids=["far away", "not wanted", "on this machine"],
)
def test_answers_are_compressed_where_the_way_is_long(
    tmp_path: Path, cluster: dict[str, Any], compresses: bool
) -> None:
    assert read_kubeconfig([written(tmp_path / "config", content(cluster=cluster))]).compresses is compresses


def test_a_kubeconfig_without_an_end_is_refused() -> None:
    with pytest.raises(UserError, match="is larger than 4 MiB"):
        read_kubeconfig([Path("/dev/zero")])


@pytest.mark.parametrize(("key", "value"), [("token", "a\nb"), ("as", "a\rb"), ("as-groups", ["a\x00"])])
def test_what_cannot_be_sent_in_a_header_is_refused(tmp_path: Path, key: str, value: Any) -> None:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"as": "me", key: value}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = tmp_path / "config"
    file.write_text(json.dumps(config))
    with pytest.raises(UserError, match=f"{key}: holds a line break or control character"):
        read_kubeconfig([file])


def test_the_fallback_is_used_only_where_no_other_source_has_a_current_context(tmp_path: Path) -> None:
    own = written(tmp_path / "own", content("own"))
    home = {"HOME": str(tmp_path)}
    set_ = {**home, "KUBECONFIG": str(written(tmp_path / "set", content("set")))}

    def found(environment: dict[str, str], context: str = "") -> tuple[str, str]:
        access = locate(None, context, environment, tmp_path, lambda: own)
        return access.name, access.origin

    assert found(set_) == ("set", "KUBECONFIG")
    assert found(home) == ("own", "`shoal up`")
    written(tmp_path / ".kube" / "config", content("usual", current=""))
    assert found(home) == ("own", "`shoal up`")
    assert found(home, "usual") == ("usual", "~/.kube/config")
    written(tmp_path / ".kube" / "config", content("usual"))
    assert found(home) == ("usual", "~/.kube/config")
    assert found(home, "own") == ("own", "`shoal up`")
    assert context_names(None, home) == ["usual"]
    assert context_names(None, set_) == ["set"]


def test_another_cluster_and_user_of_the_file_can_be_chosen(tmp_path: Path) -> None:
    said = content()
    said["clusters"].append({"name": "other", "cluster": {"server": "https://10.0.0.2"}})
    said["users"].append({"name": "bob", "user": {"token": "of-bob"}})
    file = written(tmp_path / "config", said)
    access = read_kubeconfig([file], KubeconfigChoice(cluster="other", user="bob"))
    assert (access.server, access.token, access.name) == ("https://10.0.0.2", "of-bob", "other")
    assert access.again is not None
    again = access.again()
    assert (again.server, again.token) == (access.server, access.token)
