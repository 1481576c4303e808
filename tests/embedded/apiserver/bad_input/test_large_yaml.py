"""Large bodies in YAML are read beside the loop: others are served meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from build.in_process import in_process

MAPS = "/api/v1/namespaces/default/configmaps"
_PATIENCE_S = 60


@pytest.mark.parametrize(("fault", "code"), [(b"", 201), (b"  - {", 400)])
async def test_a_large_body_in_yaml_is_read_while_others_are_served(fault: bytes, code: int, tmp_path: Path) -> None:
    lines = b"".join(b"  k%d: v\n" % number for number in range(20_000))
    body = b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: large}\ndata:\n" + lines + fault
    async with asyncio.timeout(_PATIENCE_S), in_process(tmp_path) as api:
        asked = asyncio.create_task(api.ask("POST", MAPS, body, "application/yaml"))
        served = 0
        while not asked.done():
            served += (await api.ask("GET", "/readyz")).code == 200
            await asyncio.sleep(0)
        assert (await asked).code == code
        assert served > 5
        if code == 201:
            shown = await api.ask("GET", MAPS, headers={"Accept": "application/yaml"})
            assert shown.raw.count(b": v\n") == 20_000
