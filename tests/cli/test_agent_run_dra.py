"""`shoal agent run --dra` gives GPUs to claims instead of by the device plugin, and survives being killed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from build.fake_dra_kubelet import FakeDraKubelet, until
from build.prepared_claims import allocated
from build.served_planes import served_plane
from build.small_clusters import ADMIN
from shoal.cli.main import main
from shoal.client.item import Obj
from shoal.client.kind import NAMESPACES, NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from shoal.client.port import Api
from shoal.embedded.apiserver.inside.api import InsideApi


@pytest.fixture
def folder() -> Iterator[Path]:
    """Paths of sockets are short."""
    with TemporaryDirectory(prefix="dra-") as name:
        for one in ("plugins", "registry", "cdi", "data"):
            (Path(name) / one).mkdir()
        yield Path(name)


def options(folder: Path) -> list[str]:
    folders = ["--driver-plugins-dir", str(folder / "plugins"), "--plugin-registry-dir", str(folder / "registry")]
    return ["agent", "run", "--fake", "dgx-h100", "--dra", "--node", "n1", *folders]


async def started(folder: Path, kubeconfig: Path) -> asyncio.subprocess.Process:
    more = ["--cdi-dir", str(folder / "cdi"), "--kubeconfig", str(kubeconfig)]
    command = [sys.executable, "-m", "shoal", *options(folder), *more]
    return await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)


async def claim_of(api: Api, name: str, *devices: str) -> Obj:
    given = allocated(name, *devices)
    body = {"metadata": {"name": name, "namespace": "team"}, "spec": given["spec"]}
    made = (await api.create(RESOURCE_CLAIMS, body)).obj()
    return (await api.update(RESOURCE_CLAIMS, {**made, "status": given["status"]}, "status")).obj()


@pytest.mark.slow
def test_claims_stay_prepared_after_the_agent_was_killed(folder: Path) -> None:
    kubelet = FakeDraKubelet(folder / "registry")

    async def story() -> None:
        async with served_plane(folder / "data") as served:
            api = InsideApi(served.plane, ADMIN, "test")
            await api.create(NODES, {"metadata": {"name": "n1"}})
            await api.create(NAMESPACES, {"metadata": {"name": "team"}})

            async def is_ready() -> bool:
                listed = await api.list(RESOURCE_SLICES)
                return bool(listed.items) and any((folder / "registry").iterdir())

            agent = await started(folder, served.kubeconfig)
            await until(is_ready)
            await asyncio.to_thread(kubelet.look)
            (piece,) = (await api.list(RESOURCE_SLICES)).items
            assert len(piece.obj()["spec"]["devices"]) == 8
            claim, other = await claim_of(api, "a", "gpu-1"), await claim_of(api, "b", "gpu-1")
            (answer,) = (await asyncio.to_thread(kubelet.prepare, claim)).values()
            assert not answer.error
            agent.kill()
            await agent.wait()
            kubelet.stop()
            for path in (folder / "registry").iterdir():
                path.unlink()
            agent = await started(folder, served.kubeconfig)
            await until(is_ready)
            await asyncio.to_thread(kubelet.look)
            (refused,) = (await asyncio.to_thread(kubelet.prepare, other)).values()
            assert "device gpu-1 is prepared for ResourceClaim team/a" in refused.error
            assert await asyncio.to_thread(kubelet.prepare, claim) == {claim["metadata"]["uid"]: answer}
            assert [item.version for item in (await api.list(RESOURCE_SLICES)).items] == [piece.version]
            agent.terminate()
            _, words = await agent.communicate()
            assert agent.returncode == 0, words
            assert b"Traceback" not in words
            assert b"device plugin: started" not in words
            assert not any((folder / "registry").iterdir())

    try:
        asyncio.run(story())
    finally:
        kubelet.stop()


def test_with_a_simulated_machine_the_folder_of_specifications_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(options(folder)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--dra: needs a folder for the specifications of devices; name one with --cdi-dir" in line
