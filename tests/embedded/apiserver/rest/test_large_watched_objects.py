"""What a watch of large objects keeps for a client that does not read."""

from __future__ import annotations

from pathlib import Path

import msgspec

from build.planes import config_map, operations
from shoal.embedded.apiserver.rest.options import ReadOptions
from shoal.embedded.apiserver.rest.watching import Stream

LARGE = "x" * 200_000


async def test_the_bytes_of_a_large_object_are_not_copied_and_its_line_is_whole(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        for name, text in (("a", "small"), ("b", LARGE), ("c", "small"), ("d", "small")):
            await ops.create("configmaps", config_map(name, text=text))
        stream = Stream(ops.context, ops.call("watch", "configmaps"), ReadOptions(is_watch=True), None, 60.0)
        chunks, lines = list[bytes](), list[bytes]()
        record = ops.find("configmaps", "b")
        assert record is not None
        async for chunk in stream.lines():
            chunks.append(chunk)
            lines = b"".join(chunks).splitlines()
            if len(lines) == 5 and b"".join(chunks).endswith(b"\n"):
                await ops.update("configmaps", {**record.obj(), "data": {"text": LARGE + "y"}})
            if len(lines) == 6 and chunk == b"}\n":
                break
        stream.close()
        assert any(chunk is record.data for chunk in chunks)
        changed = ops.find("configmaps", "b")
        assert changed is not None
        assert any(chunk is changed.data for chunk in chunks)
        told = [msgspec.json.decode(line) for line in lines]
        assert [one["type"] for one in told] == ["ADDED"] * 5 + ["MODIFIED"]
        assert [one["object"]["metadata"]["name"] for one in told] == ["a", "b", "c", "d", "kube-root-ca.crt", "b"]
