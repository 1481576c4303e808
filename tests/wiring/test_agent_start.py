"""The parts of an agent start while the driver does not respond, and serve what they know then."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from build.silent_driver import SilentDriver
from shoal.agent.cdi.driver_files import driver_nodes
from shoal.agent.dra.claim_driver import ClaimFolders
from shoal.agent.plugin.device_plugin import PluginSettings
from shoal.agent.plugin.plugin_spec import PluginSpec
from shoal.client.http.access import Access
from shoal.devices.mps_limits import MOST_MPS_CLIENTS, MOST_OLD_MPS_CLIENTS
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.plugin_flags import PluginFlags
from shoal.devices.port import GpuList
from shoal.wiring.agent_node_parts import MigChoice, NodePartSettings
from shoal.wiring.gpu_driver import open_driver, open_mig
from shoal.wiring.gpu_sharing import SharingOptions
from shoal.wiring.node_agent import AgentSettings, agent_parts
from shoal.wiring.plugin_settings import SettingsReader, most_mps_clients

T = TypeVar("T")
MPS = "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 48}]}}\n"


def hanging() -> SilentDriver:
    driver = SilentDriver(open_driver("dgx-h100"))
    driver.hangs_at_list = driver.hangs_at_versions = True
    driver.hold.clear()
    return driver


def returned(work: Callable[[], T]) -> T:
    """Fails if the work is blocked."""
    found: list[T] = []
    running = threading.Thread(target=lambda: found.append(work()), daemon=True)
    running.start()
    running.join(20)
    assert found, "it is blocked"
    return found[0]


def settings(folder: Path) -> AgentSettings:
    return AgentSettings(
        fake="dgx-h100",
        folder=folder,
        cdi_folder=folder,
        node="n",
        access=Access("https://127.0.0.1:1", "nowhere"),
        parts=NodePartSettings(metrics=("127.0.0.1", 0), has_labels=True, mig=MigChoice("gpu-operator")),
    )


def test_the_parts_are_made_while_the_driver_does_not_respond(tmp_path: Path) -> None:
    driver = hanging()
    chosen = settings(tmp_path)
    parts = returned(lambda: agent_parts(driver, open_mig("dgx-h100")[1], chosen))
    assert {"health", "device plugin", "condition of the node", "MIG layout", "metrics"} <= {one.name for one in parts}
    claims = ClaimFolders(tmp_path, tmp_path, tmp_path)
    with_claims = msgspec.structs.replace(chosen, parts=msgspec.structs.replace(chosen.parts, claims=claims))
    parts = returned(lambda: agent_parts(driver, open_mig("dgx-h100")[1], with_claims))
    assert "resource claims" in {one.name for one in parts}
    driver.hold.set()


def test_the_parts_are_made_while_the_driver_does_not_respond_and_mps_is_configured(tmp_path: Path) -> None:
    driver = hanging()
    config = tmp_path / "plugin.yaml"
    config.write_text(MPS)
    chosen = msgspec.structs.replace(settings(tmp_path), config=config, sharing=SharingOptions("/nowhere/mps"))
    parts = returned(lambda: agent_parts(driver, open_mig("dgx-h100")[1], chosen))
    assert "MPS" in {one.name for one in parts}
    driver.hold.set()


def test_the_limit_of_mps_clients_is_that_of_the_gpus_once_the_driver_lists_them() -> None:
    driver = hanging()
    old = tuple(msgspec.structs.replace(gpu, compute_capability="7.0") for gpu in open_driver("dgx-h100").gpus().gpus)
    driver.list = GpuList(old)
    most = most_mps_clients(driver, patience_s=0.01)
    assert returned(most) == MOST_MPS_CLIENTS
    driver.hold.set()
    assert returned(most_mps_clients(driver)) == MOST_OLD_MPS_CLIENTS


def test_the_driver_is_not_asked_for_a_configuration_without_mps() -> None:
    asked: list[int] = []

    def most() -> int:
        asked.append(1)
        return MOST_MPS_CLIENTS

    reader = SettingsReader({}, most)
    reader.read("version: v1\n")
    assert asked == []
    reader.read(MPS)
    assert asked == [1]


def test_a_specification_is_not_written_while_the_driver_does_not_report_its_version(tmp_path: Path) -> None:
    driver = hanging()
    gpus = open_driver("dgx-h100").gpus().gpus
    flags = PluginFlags(device_list_strategy=("cdi-cri",))
    chosen = PluginSettings(flags, PluginConfig(), driver_nodes(Path("/")))
    spec = PluginSpec(tmp_path, driver, lambda: chosen, dict, patience_s=0.01)

    def write() -> bool:
        spec.write(gpus)
        return True

    assert returned(write)
    assert not spec.path.exists()
    driver.hold.set()
