"""Serves `/shoal/join`: machines join the cluster, renew their certificate, keep connections, and are removed.

    GET    /shoal/join/authority                   the certificate of the cluster's authority, for everyone
    POST   /shoal/join/certificate                 a join token and a request become the certificate of a new node
    POST   /shoal/join/nodes/NAME/certificate      the next certificate of the same node
    GET    /shoal/join/nodes/NAME/connection       a connection for logs and commands
    DELETE /shoal/join/nodes/NAME/certificate      the node's certificates are refused from now on

Access is decided before this is called (`security/join_access.py`). A name is given to one machine only: a token does
not get the certificate of a node that exists or has joined, unless the same machine repeats its request.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import msgspec
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from shoal import __version__
from shoal.api.names import object_name_fault
from shoal.api.subjects import reading
from shoal.client import certificates
from shoal.client.kubelet.node_joining import (
    AUTHORITY_PATH,
    CERTIFICATE_LIFE,
    JOIN_PATH,
    NODE_GROUP,
    NODE_USER,
    JoinAnswer,
    JoinRequest,
    node_in,
    protocol_fault,
)
from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.security.authority import Authority
from shoal.embedded.apiserver.security.joined_nodes import JoinedNodes
from shoal.embedded.apiserver.server import answers
from shoal.embedded.apiserver.server.accept import PLAIN
from shoal.embedded.apiserver.server.receiving import body_bytes
from shoal.embedded.apiserver.streams.node_connections import NodeConnections

_log = logging.getLogger("shoal.cluster")
_LONGEST_BODY = 16 << 10
_Handler = Callable[[web.BaseRequest, str], Awaitable[web.StreamResponse]]


def _today() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - certificates need the real date


class JoinRoutes:
    def __init__(
        self,
        authority: Authority,
        nodes: JoinedNodes,
        reader: Reader,
        connections: NodeConnections,
        today: Callable[[], datetime] = _today,
    ) -> None:
        self._authority, self._nodes, self._reader = authority, nodes, reader
        self._connections, self._today = connections, today
        self._handlers: dict[tuple[str, str], _Handler] = {
            ("POST", "certificate"): self._renew,
            ("DELETE", "certificate"): self._remove,
            ("GET", "connection"): self._connect,
        }

    def is_conversation(self, path: str) -> bool:
        return node_in(path)[1] == "connection"

    async def serve(self, request: web.BaseRequest, path: str, actor: Actor) -> web.StreamResponse:
        if (request.method, path) == ("GET", AUTHORITY_PATH):
            return web.Response(body=self._authority.root.certificate, content_type="application/x-pem-file")
        if (request.method, path) == ("POST", JOIN_PATH):
            return await self._join(request, actor)
        name, what = node_in(path)
        handler = self._handlers.get((request.method, what))
        if handler is None:
            raise status.no_such_path()
        return await handler(request, name)

    async def _join(self, request: web.BaseRequest, actor: Actor) -> web.StreamResponse:
        wanted = await _wanted(request)
        name = wanted.node
        fault = object_name_fault(name)
        if fault:
            raise status.bad_request(f"the name of the machine is not a name of a node: {fault}")
        key = _key_of(wanted)
        joined = self._nodes.get(name)
        is_repeated = joined is not None and joined.key == key
        if not is_repeated and (joined is not None or self._reader.get("", "nodes", "", name) is not None):
            raise status.already_exists("nodes", "", name)
        issued = self._issued(name, key, wanted)
        _log.warning("the machine %s joins as a node, with the token %s", name, actor.name.rpartition(":")[2])
        return issued

    async def _renew(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        wanted = await _wanted(request)
        if wanted.node != name:
            raise status.bad_request("the request is for another node than its path")
        if self._nodes.get(name) is None:
            raise status.not_found("nodes", "", name)
        return self._issued(name, _key_of(wanted), wanted)

    async def _remove(self, _: web.BaseRequest, name: str) -> web.StreamResponse:
        if not self._nodes.remove(name, self._today().timestamp()):
            raise status.not_found("nodes", "", name)
        _log.warning("the machine of node %s is removed: its certificates are refused", name)
        await self._connections.end(name)
        return answers.answer(200, {"removed": name}, PLAIN)

    async def _connect(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        try:
            protocol = int(request.query.get("protocol", "0"))
        except ValueError:
            protocol = 0
        _check_protocol(protocol, request.query.get("version", ""))
        return await self._connections.serve(request, name)

    def _issued(self, name: str, key: str, wanted: JoinRequest) -> web.Response:
        now = self._today()
        if self._nodes.has_too_many(name, now.timestamp()):
            raise status.too_many_requests(f"node {name} has too many valid certificates", 3600)
        user = f"{NODE_USER}{name}", (NODE_GROUP,)
        try:
            with reading():
                made = certificates.client_of_request(
                    self._authority.root, wanted.request.encode(), user, now, CERTIFICATE_LIFE
                )
        except ValueError as error:
            raise status.bad_request(f"the certificate signing request is refused: {error}") from None
        parsed = x509.load_pem_x509_certificate(made)
        serial = f"{parsed.serial_number:x}"
        self._nodes.issue(name, key, (serial, parsed.not_valid_after_utc.timestamp()), now.timestamp())
        return answers.answer(201, msgspec.json.encode(JoinAnswer(made.decode(), __version__)), PLAIN)


async def _wanted(request: web.BaseRequest) -> JoinRequest:
    body = await body_bytes(request)
    if len(body) > _LONGEST_BODY:
        raise status.too_large(_LONGEST_BODY)
    try:
        wanted = msgspec.json.decode(body, type=JoinRequest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise status.bad_request(f"the body is not a request to join: {error}") from None
    _check_protocol(wanted.protocol, wanted.version)
    return wanted


def _check_protocol(protocol: int, version: str) -> None:
    fault = protocol_fault(protocol, version[:50], __version__)
    if fault:
        raise status.bad_request(fault)


def _key_of(wanted: JoinRequest) -> str:
    """The hash of the key of a request."""
    try:
        with reading():
            key = x509.load_pem_x509_csr(wanted.request.encode()).public_key()
            return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()
    except ValueError:
        raise status.bad_request("the certificate signing request cannot be read") from None
