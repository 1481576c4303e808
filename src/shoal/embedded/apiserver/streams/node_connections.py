"""Reaches the kubelets of joined machines through connections that the machines themselves have opened.

A machine keeps some idle connections to this server: WebSockets, authenticated by its client certificate and by the
server's. For each machine a loopback port of this process takes the server's own connections to its kubelet, and passes
their bytes through one of the idle ones; the machine passes them on to its kubelet, and opens another. The server's TLS
connection to the kubelet, with the client certificate that the kubelet requires, runs inside. So a joined machine
listens on no port that others reach, may be behind a firewall, and the server connects to no address that a Node names.
Rejected: connections to the address of the Node, as Kubernetes makes them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from aiohttp import WSCloseCode, WSMsgType, web

from shoal.client.kubelet.node_joining import OPENING
from shoal.embedded.apiserver.status import ApiError, bad_request
from shoal.embedded.apiserver.streams.kubelet_address import Kubelet

_PIECE = 64 * 1024
_MOST_IDLE = 16
_HEARTBEAT_S = 15.0
_PATIENCE_S = 10.0
"""How long the server waits for an idle connection of a machine whose connections are all in use."""
_LOOPBACK = "127.0.0.1"


class _OutgoingConnection:
    """One connection of a machine, idle or in use."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket
        self.writer: asyncio.StreamWriter | None = None


class _Machine:
    """The connections of one machine."""

    def __init__(self, listener: asyncio.Server) -> None:
        self.listener = listener
        self.idle: deque[_OutgoingConnection] = deque()
        self.arrived = asyncio.Event()
        self.lines: set[_OutgoingConnection] = set()


class NodeConnections:
    def __init__(self, has_joined: Callable[[str], bool], patience_s: float = _PATIENCE_S) -> None:
        self._has_joined, self._patience_s = has_joined, patience_s
        self._arrived = asyncio.Event()
        """Set when a machine has connected."""
        self._machines: dict[str, _Machine] = {}

    def has_joined(self, node: str) -> bool:
        return self._has_joined(node)

    def connected(self) -> Sequence[str]:
        """The nodes whose machines are connected now."""
        return [name for name, machine in self._machines.items() if machine.lines]

    async def kubelet(self, node: str) -> Kubelet:
        """Where the kubelet of a joined machine is reached. Raises ApiError if it does not connect for some time, as
        after a restart of this server."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience_s):
                while (machine := self._connected(node)) is None:
                    self._arrived.clear()
                    await self._arrived.wait()
                return Kubelet(node, _LOOPBACK, int(machine.listener.sockets[0].getsockname()[1]))
        raise ApiError(500, "", f'error dialing backend: the machine of node "{node}" is not connected')

    def _connected(self, node: str) -> _Machine | None:
        machine = self._machines.get(node)
        return machine if machine is not None and machine.lines else None

    async def serve(self, request: web.BaseRequest, node: str) -> web.WebSocketResponse:
        """One connection of a machine, from its start to its end."""
        socket = web.WebSocketResponse(heartbeat=_HEARTBEAT_S, max_msg_size=2 * _PIECE, compress=False)
        if not socket.can_prepare(request):
            raise bad_request("Upgrade request required")
        machine = await self._machine(node)
        if len(machine.idle) >= _MOST_IDLE:
            raise bad_request(f"node {node} has {_MOST_IDLE} idle connections, the most allowed")
        await socket.prepare(request)
        line = _OutgoingConnection(socket)
        machine.lines.add(line)
        machine.idle.append(line)
        machine.arrived.set()
        self._arrived.set()
        try:
            async for message in socket:
                # Nothing comes before the connection is in use, then bytes, and a text at the end.
                if line.writer is None or message.type is not WSMsgType.BINARY:
                    break
                line.writer.write(message.data)
                with suppress(ConnectionError):
                    await line.writer.drain()
        finally:
            machine.lines.discard(line)
            with suppress(ValueError):
                machine.idle.remove(line)
            if line.writer is not None:
                line.writer.close()
        return socket

    async def end(self, node: str) -> None:
        """Close all connections of a machine."""
        machine = self._machines.pop(node, None)
        if machine is None:
            return
        machine.listener.close()
        for line in tuple(machine.lines):
            await line.socket.close(code=WSCloseCode.GOING_AWAY)

    async def close(self) -> None:
        for node in tuple(self._machines):
            await self.end(node)

    async def _machine(self, node: str) -> _Machine:
        found = self._machines.get(node)
        if found is None:
            listener = await asyncio.start_server(partial(self._dialed, node), _LOOPBACK, 0)
            found = self._machines.get(node)
            if found is not None:
                listener.close()
                return found
            found = self._machines[node] = _Machine(listener)
        return found

    async def _dialed(self, node: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The server's own connection to a kubelet, through an idle connection of the machine."""
        try:
            line = await self._taken(node)
            if line is None:
                return
            line.writer = writer
            with suppress(ConnectionError, RuntimeError):
                await line.socket.send_str(OPENING)
                while piece := await reader.read(_PIECE):
                    await line.socket.send_bytes(piece)
            await line.socket.close()
        finally:
            writer.close()

    async def _taken(self, node: str) -> _OutgoingConnection | None:
        """An idle connection; None if the machine has none for some time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                while (machine := self._machines.get(node)) is not None:
                    while machine.idle:
                        line = machine.idle.popleft()
                        if not line.socket.closed:
                            return line
                    machine.arrived.clear()
                    await machine.arrived.wait()
        return None
