"""The record of joined machines: a removed one has no valid certificate, also after a restart of the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.embedded.apiserver.security.joined_nodes import FILE, JoinedNodes, has_joined_nodes
from shoal.units.errors import UserError


def test_all_certificates_of_a_removed_node_are_refused_after_a_restart(tmp_path: Path) -> None:
    nodes = JoinedNodes(tmp_path)
    nodes.issue("n1", "key", ("1a", 100.0), 0.0)
    nodes.issue("n1", "other key", ("1b", 200.0), 50.0)
    nodes.issue("n2", "key", ("2a", 100.0), 0.0)

    assert nodes.remove("n1", 60.0)

    again = JoinedNodes(tmp_path)
    assert [again.is_removed(one) for one in ("1a", "1b", "2a")] == [True, True, False]
    assert again.get("n1") is None
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_the_key_of_the_first_request_is_kept(tmp_path: Path) -> None:
    nodes = JoinedNodes(tmp_path)
    nodes.issue("n1", "first", ("1a", 100.0), 0.0)
    nodes.issue("n1", "second", ("1b", 200.0), 0.0)

    node = nodes.get("n1")

    assert node is not None
    assert node.key == "first"


def test_a_node_has_a_bounded_number_of_valid_certificates() -> None:
    nodes = JoinedNodes(None)
    for number in range(8):
        assert not nodes.has_too_many("n1", 0.0)
        nodes.issue("n1", "key", (f"{number}", 100.0 + number), 0.0)

    assert nodes.has_too_many("n1", 0.0)
    assert not nodes.has_too_many("n1", 100.0)


def test_an_unknown_node_is_not_removed(tmp_path: Path) -> None:
    assert not JoinedNodes(tmp_path).remove("n1", 0.0)
    assert not has_joined_nodes(tmp_path)


def test_a_damaged_record_stops_the_server(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("[]")

    with pytest.raises(UserError, match="removed machines could come back"):
        JoinedNodes(tmp_path)
