"""Gets the certificate of this machine as a node: the first one for a join token, and the next ones before it expires.

Guarantees: the token is sent only to a server whose authority has the hash of the join command; a certificate is
replaced after two thirds of its life, and attempts are repeated until it is.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import msgspec

from shoal import __version__
from shoal.agent.kubelet.node_identity import JoinedCluster, NodeIdentity
from shoal.client import certificates
from shoal.client.clock import Clock
from shoal.client.http.access import Access
from shoal.client.http.connection import Connection
from shoal.client.http.settings import KubeSettings
from shoal.client.kubelet.node_joining import (
    AUTHORITY_PATH,
    JOIN_PATH,
    NODE_USER,
    JoinAnswer,
    JoinRequest,
    authority_hash,
    certificate_path,
    is_authority,
    renewal_at,
)
from shoal.client.refusals import AlreadyExistsError, NotFoundError, RefusedError, UnauthorizedError
from shoal.units.errors import ShoalError, TemporaryError, UserError

_log = logging.getLogger("shoal.agent.kubelet")
_SETTINGS = KubeSettings(timeout_s=20.0, connections=1)
_SHORTEST_SLEEP_S, _LONGEST_SLEEP_S, _RETRY_S = 1.0, 3600.0, 600.0


class JoinCommand(msgspec.Struct, frozen=True):
    """What the command line of `shoal join` says."""

    server: str
    token: str
    authority_hash: str
    node: str


async def join(command: JoinCommand, identity: NodeIdentity) -> JoinedCluster:
    """Raises UserError for a wrong hash, token or name, and BusyError if the server does not answer."""
    authority = await _authority(command)
    key = identity.first_key()
    access = Access(command.server, command.server, authority=authority.decode(), token=command.token)
    try:
        certificate = await _certificate(access, JOIN_PATH, command.node, key)
    except UnauthorizedError:
        fix = "`shoal node token` on the server's machine prints a new command"
        raise UserError("the token is wrong, has expired or was revoked", fix=fix) from None
    except AlreadyExistsError:
        fix = f"choose another name with --name, or remove that node first: shoal node remove {command.node}"
        raise UserError(f"the cluster has a node {command.node} already", fix=fix) from None
    except RefusedError as error:
        raise UserError(f"{command.server} refuses this machine: {error}") from None
    joined = JoinedCluster(command.server, command.node)
    identity.join(joined, authority, certificate, key)
    return joined


async def renew(cluster: JoinedCluster, identity: NodeIdentity) -> None:
    """Replace the certificate, with a new key."""
    key = certificates.new_key()
    certificate = await _certificate(identity.access(cluster), certificate_path(cluster.node), cluster.node, key)
    identity.replace(certificate, key)


async def keep_renewed(identity: NodeIdentity, clock: Clock, renewed: Callable[[], Awaitable[None]]) -> None:
    """Runs until cancelled. `renewed` replaces the certificate."""
    while True:
        left_s = renewal_at(identity.certificate()).timestamp() - clock.seconds()
        if left_s > 0:
            await clock.sleep(min(max(left_s, _SHORTEST_SLEEP_S), _LONGEST_SLEEP_S))
            continue
        try:
            await renewed()
            _log.info("the certificate of this machine is renewed")
        except (TemporaryError, RefusedError) as error:
            _log.warning("the certificate of this machine cannot be renewed now: %s", error)
            await clock.sleep(_RETRY_S)


async def _authority(command: JoinCommand) -> bytes:
    """The certificate of the cluster's authority, which is checked by its hash, and not by TLS."""
    connection = Connection(Access(command.server, command.server, is_insecure=True), _SETTINGS)
    try:
        found = await connection.ask("GET", AUTHORITY_PATH)
    except NotFoundError:
        fix = "start it with `shoal up --host ADDRESS`"
        raise UserError(f"{command.server} accepts no machines", fix=fix) from None
    except RefusedError as error:
        raise UserError(f"{command.server} is not a cluster of `shoal up`: {error}") from None
    finally:
        await connection.close()
    if not is_authority(found, command.authority_hash):
        raise UserError(
            f"{command.server} has another certificate authority ({_shown(found)}) than --ca-hash says",
            fix="check the address; if it is right, another machine may answer in its place. Nothing was sent to it",
        )
    return found


def _shown(certificate: bytes) -> str:
    try:
        return authority_hash(certificate)
    except ValueError:
        return "not a certificate"


async def _certificate(access: Access, path: str, node: str, key: bytes) -> bytes:
    connection = Connection(access, _SETTINGS)
    request = certificates.new_request(key, f"{NODE_USER}{node}").decode()
    try:
        body = await connection.ask("POST", path, body=JoinRequest(node, request, version=__version__))
    finally:
        await connection.close()
    try:
        return msgspec.json.decode(body, type=JoinAnswer).certificate.encode()
    except msgspec.DecodeError as error:
        raise ShoalError(f"{access.server} has no valid answer: {error}") from None
