"""The kubeconfig: one of its own, or merged into what people have without losing anything of theirs."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from build.identities import authority
from shoal.embedded.apiserver.security.kubeconfig import write_kubeconfig
from shoal.units.errors import UserError

URL = "https://127.0.0.1:6443"


def test_it_is_readable_for_its_owner_alone_and_leads_to_the_cluster(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "kubeconfig"
    write_kubeconfig(path, URL, authority())
    assert path.stat().st_mode & 0o777 == 0o600
    found = yaml.safe_load(path.read_text())
    assert found["current-context"] == "shoal"
    assert found["clusters"][0]["cluster"]["server"] == URL
    trusted = base64.b64decode(found["clusters"][0]["cluster"]["certificate-authority-data"])
    assert trusted == authority().root.certificate


def test_other_clusters_stay_and_an_older_entry_of_ours_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "config"
    theirs = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "work", "cluster": {"server": "https://work"}}],
        "contexts": [{"name": "work", "context": {"cluster": "work", "user": "me"}}],
        "users": [{"name": "me", "user": {"token": "secret"}}],
        "current-context": "work",
        "extensions": [{"name": "kept"}],
    }
    path.write_text(yaml.safe_dump(theirs))
    for url in ("https://127.0.0.1:1", URL):
        write_kubeconfig(path, url, authority())
    found = yaml.safe_load(path.read_text())
    assert [one["name"] for one in found["clusters"]] == ["work", "shoal"]
    assert found["clusters"][1]["cluster"]["server"] == URL
    assert found["users"][0] == {"name": "me", "user": {"token": "secret"}}
    assert found["current-context"] == "shoal"
    assert found["extensions"] == [{"name": "kept"}]


@pytest.mark.parametrize("content", ["- a\n- b\n", "kind: Pod\n", "clusters: 5\n", "a: [\n", "\x00"])
def test_a_file_that_is_no_kubeconfig_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "notes"
    path.write_text(content)
    with pytest.raises(UserError, match="not a kubeconfig"):
        write_kubeconfig(path, URL, authority())
    assert path.read_text() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("")
    link = tmp_path / "config"
    link.symlink_to(tmp_path / "real")
    write_kubeconfig(link, URL, authority())
    assert link.is_symlink()
    assert yaml.safe_load((tmp_path / "real").read_text())["current-context"] == "shoal"
