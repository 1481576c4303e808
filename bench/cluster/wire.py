"""A client that costs little: HTTP/1.1 over TLS, one request at a time per connection, bodies as bytes.

The load must not come from the client: a full HTTP library spends about as much on a request as the server does, and
this machine has two cores for both.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import tempfile
from pathlib import Path

import yaml


class Target:
    """Where the server is and who asks, from a kubeconfig with certificates inside."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        host, _, port = cluster["server"].removeprefix("https://").rpartition(":")
        self.host, self.port = host, int(port)
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.tls = ssl.create_default_context(cadata=authority)
        with tempfile.TemporaryDirectory() as folder:
            pair = Path(folder) / "pair.pem"
            pair.write_bytes(
                base64.b64decode(user["client-certificate-data"]) + b"\n" + base64.b64decode(user["client-key-data"])
            )
            self.tls.load_cert_chain(pair)


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self._reader = reader
        self._writer = writer
        self._host = host.encode()

    @classmethod
    async def open(cls, target: Target) -> Connection:
        reader, writer = await asyncio.open_connection(target.host, target.port, ssl=target.tls, limit=1 << 22)
        return cls(reader, writer, target.host)

    async def ask(self, method: bytes, path: bytes, body: bytes = b"", media: bytes = b"application/json") -> int:
        """Send one request and read its answer to the end; the status code."""
        return (await self.answer(method, path, body, media))[0]

    async def answer(
        self, method: bytes, path: bytes, body: bytes = b"", media: bytes = b"application/json"
    ) -> tuple[int, bytes]:
        head = b"%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
        self._writer.write(head % (method, path, self._host, media, len(body)) + body)
        headers = await self._reader.readuntil(b"\r\n\r\n")
        code = int(headers[9:12])
        lowered = headers.lower()
        if b"\r\ntransfer-encoding: chunked\r\n" in lowered:
            # As a kube-apiserver answers with all but the smallest objects.
            return code, await self._chunks()
        found = lowered.find(b"content-length: ")
        if found < 0:
            raise RuntimeError(f"an answer without a length: {headers!r}")
        length = int(lowered[found + 16 : lowered.index(b"\r\n", found)])
        return code, await self._reader.readexactly(length)

    async def _chunks(self) -> bytes:
        found = []
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            found.append((await self._reader.readexactly(size + 2))[:size])
        await self._reader.readuntil(b"\r\n")
        return b"".join(found)

    def close(self) -> None:
        self._writer.close()
