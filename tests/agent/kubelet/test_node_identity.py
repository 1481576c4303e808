"""The identity of a joined machine: private files, one process, and a certificate that is renewed in time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from build.small_clusters import START_S
from build.virtual_time import virtual
from shoal.agent.kubelet.node_identity import JoinedCluster, NodeIdentity
from shoal.client import certificates
from shoal.client.clock import LoopClock
from shoal.client.http.tls import client_context
from shoal.units.errors import TemporaryError, UserError
from shoal.wiring.joining import keep_renewed

CLUSTER = JoinedCluster("https://192.0.2.1:6443", "n1")
START = datetime.fromtimestamp(START_S, UTC)
AUTHORITY = certificates.new_authority(START)
LIFE = timedelta(hours=9)
MINUTE_S = 60.0


def issued(now: datetime) -> tuple[bytes, bytes]:
    key = certificates.new_key()
    request = certificates.new_request(key, "n1")
    user = ("system:node:n1", ("system:nodes",))
    return certificates.client_of_request(AUTHORITY, request, user, now, LIFE), key


def joined(folder: Path) -> NodeIdentity:
    identity = NodeIdentity(folder)
    with identity.hold():
        identity.join(CLUSTER, AUTHORITY.certificate, *issued(START))
    return identity


def test_all_files_are_private(tmp_path: Path) -> None:
    identity = joined(tmp_path / "node")
    identity.first_key()

    assert {file.stat().st_mode & 0o777 for file in identity.folder.iterdir()} == {0o600}
    assert identity.folder.stat().st_mode & 0o777 == 0o700


def test_the_key_of_the_first_request_is_created_once(tmp_path: Path) -> None:
    assert NodeIdentity(tmp_path).first_key() == NodeIdentity(tmp_path).first_key()


def test_a_machine_that_left_has_no_credentials(tmp_path: Path) -> None:
    identity = joined(tmp_path)
    assert identity.cluster() == CLUSTER

    identity.leave()

    assert identity.cluster() is None
    assert [file.name for file in tmp_path.iterdir()] == ["lock"]


def test_certificate_and_key_can_be_used_from_their_common_file(tmp_path: Path) -> None:
    context = client_context(joined(tmp_path).access(CLUSTER))

    assert context.cert_store_stats()["x509_ca"] == 1


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        NodeIdentity(tmp_path).hold(),
        pytest.raises(UserError, match="another `shoal join` runs"),
        NodeIdentity(tmp_path).hold(),
    ):
        pass


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    joined(tmp_path)
    (tmp_path / "cluster.json").write_text("{}")

    with pytest.raises(UserError, match=r"cluster\.json"):
        NodeIdentity(tmp_path).cluster()


@virtual
async def test_the_certificate_is_replaced_in_time_although_attempts_fail(tmp_path: Path) -> None:
    identity, clock = joined(tmp_path), LoopClock(START_S)
    attempts: list[float] = []

    async def renewed() -> None:
        attempts.append(clock.seconds())
        if len(attempts) % 3:
            raise TemporaryError("no answer", 1.0)
        identity.replace(*issued(clock.now()))

    task = asyncio.ensure_future(keep_renewed(identity, clock, renewed))
    for _ in range(30 * 60):
        await clock.sleep(MINUTE_S)
        pair = certificates.Pair(identity.certificate(), identity.certificate())
        assert certificates.lives(pair, clock.now())
        assert certificates.is_whole(pair)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task

    # Four certificates of six hours, each at the third attempt.
    assert len(attempts) == 12
