"""Which requests are conversations, and so have no seat in flow control."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.planes import operations
from build.readers import FixedReader
from shoal.client.certificates import Pair
from shoal.embedded.apiserver.request_info import parse_path
from shoal.embedded.apiserver.security.authorize import AllowRecognised
from shoal.embedded.apiserver.server.upgrades import Upgrades
from shoal.embedded.apiserver.streams.kubelet_routes import conversations
from shoal.embedded.apiserver.streams.kubelets import Kubelets
from shoal.embedded.apiserver.streams.terminal import CannedTerminal


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("/api/v1/namespaces/a/pods/p/log", True),
        ("/api/v1/namespaces/a/pods/p/exec", True),
        ("/api/v1/nodes/n/proxy/metrics", True),
        ("/api/v1/namespaces/a/configmaps/m/log", False),
        ("/apis/meters.example.com/v1/namespaces/a/readings/r/log", False),
        ("/apis/meters.example.com/v1/namespaces/a/pods/p/exec", False),
        ("/api/v1/namespaces/a/pods/p", False),
    ],
)
async def test_a_name_alone_makes_no_conversation(tmp_path: Path, path: str, is_one: bool) -> None:
    doors = conversations(FixedReader(), AllowRecognised(), CannedTerminal(), Kubelets(Pair(b"", b"")))
    async with operations(tmp_path) as ops:
        assert Upgrades(ops.context, doors).serves(parse_path(path)) is is_one
