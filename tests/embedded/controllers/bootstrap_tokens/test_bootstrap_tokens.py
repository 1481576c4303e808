"""Bootstrap tokens end at the time that they say."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.kind import SECRETS
from shoal.embedded.controllers.bootstrap_tokens.cleaner import token_cleaner


async def _token(cluster: SmallCluster, name: str, expiration: str, namespace: str = "kube-system") -> None:
    data = {"expiration": b64encode(expiration.encode()).decode()} if expiration else {}
    secret = {"metadata": {"name": name}, "type": "bootstrap.kubernetes.io/token", "data": data}
    await cluster.create(SECRETS, secret, namespace)


@virtual
async def test_only_tokens_whose_time_is_up_go(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [token_cleaner]) as cluster:
        await _token(cluster, "soon", "2026-01-01T01:00:00Z")
        await _token(cluster, "never", "")
        await _token(cluster, "nonsense", "tomorrow")
        await _token(cluster, "elsewhere", "2026-01-01T01:00:00Z", "default")
        await cluster.pass_time(3590)
        names = {one["metadata"]["name"] for one in await cluster.all(SECRETS)}
        assert names == {"soon", "never", "nonsense", "elsewhere"}
        await cluster.pass_time(20)
        names = {one["metadata"]["name"] for one in await cluster.all(SECRETS)}
        assert names == {"never", "nonsense", "elsewhere"}
