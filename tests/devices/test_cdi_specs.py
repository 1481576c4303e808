"""CDI specifications name every GPU and MIG instance in each form, with the device nodes that it needs."""

from __future__ import annotations

import json

import msgspec
import pytest

from build.gpu_pods import device_manager
from shoal.agent.cdi.spec_file import spec_bytes
from shoal.devices.cdi_devices import CdiInput, DriverFile, DriverFiles, node_spec, qualified
from shoal.devices.cdi_spec import CdiDevice, CdiSpec, ContainerEdits, DeviceNode, cdi_spec
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.simulated_driver import SimulatedDriver, simulated_capabilities

LIBRARY = DriverFile("/usr/lib64/libcuda.so.580.95.05", "/usr/lib64/libcuda.so.580.95.05", ("/usr/lib64/libcuda.so.1",))


def given(machine: str) -> CdiInput:
    manager = device_manager(machine)
    gpus = SimulatedDriver(manager, DcgmExporter(manager, booted_s=0.0), lambda: 1.0).gpus().gpus
    return CdiInput(gpus=gpus, driver="580.95.05", files=DriverFiles(), capabilities=simulated_capabilities(gpus))


def nodes_of(spec: CdiSpec, name: str) -> list[str]:
    device = next(one for one in spec.devices if one.name == name)
    return [node.path for node in device.container_edits.device_nodes]


def test_a_gpu_has_its_three_names_and_its_device_node() -> None:
    scene = given("dgx-h100")
    spec = node_spec(scene)
    for name in ("2", "gpu2", scene.gpus[2].uuid):
        assert nodes_of(spec, name) == ["/dev/nvidia2"]


def test_the_device_node_has_the_minor_number_and_not_the_index() -> None:
    scene = given("g6.12xlarge")
    moved = msgspec.structs.replace(scene, gpus=(msgspec.structs.replace(scene.gpus[0], minor=3), *scene.gpus[1:3]))
    assert nodes_of(node_spec(moved), "0") == ["/dev/nvidia3"]


def test_all_is_every_gpu() -> None:
    assert nodes_of(node_spec(given("dgx-h100")), "all") == [f"/dev/nvidia{index}" for index in range(8)]


def test_an_instance_has_its_gpu_and_its_two_capabilities() -> None:
    scene = given("dgx-h100[mig=all-1g.10gb]")
    spec = node_spec(scene)
    first = scene.gpus[0].instances[0]
    numbers = [scene.capabilities[f"gpu0/gi{first.instance}/{name}access"] for name in ("", "ci0/")]
    wanted = ["/dev/nvidia0", *(f"/dev/nvidia-caps/nvidia-cap{number}" for number in numbers)]
    for name in ("0:0", "mig0:0", first.uuid):
        assert nodes_of(spec, name) == wanted


def test_a_gpu_in_mig_mode_is_no_device_and_all_is_every_instance() -> None:
    spec = node_spec(given("dgx-h100[mig=all-1g.10gb]"))
    names = {device.name for device in spec.devices}
    assert "gpu0" not in names
    assert len(names) == 8 * 7 * 3 + 1
    assert len(nodes_of(spec, "all")) == 8 * (1 + 7 * 2)


def test_an_instance_without_capabilities_is_left_out() -> None:
    scene = msgspec.structs.replace(given("dgx-h100[mig=all-1g.10gb]"), capabilities={})
    assert node_spec(scene).devices == ()


def test_device_nodes_of_a_driver_in_a_container_have_the_path_on_the_host() -> None:
    scene = msgspec.structs.replace(given("dgx-h100"), dev_root="/run/nvidia/driver")
    device = node_spec(scene).devices[0]
    assert device.container_edits.device_nodes[0] == DeviceNode("/dev/nvidia0", "/run/nvidia/driver/dev/nvidia0")


def test_without_nvidias_hook_each_link_is_a_mount_of_the_library() -> None:
    scene = msgspec.structs.replace(given("dgx-h100"), files=DriverFiles(libraries=(LIBRARY,)))
    edits = node_spec(scene).container_edits
    assert edits is not None
    assert [mount.container_path for mount in edits.mounts] == [LIBRARY.container, LIBRARY.links[0]]
    assert {mount.host_path for mount in edits.mounts} == {LIBRARY.host}
    assert edits.hooks == ()


def test_with_the_hook_links_and_the_cache_of_libraries_are_its_work() -> None:
    files = DriverFiles(libraries=(LIBRARY,), hook="/usr/bin/nvidia-cdi-hook")
    edits = node_spec(msgspec.structs.replace(given("dgx-h100"), files=files)).container_edits
    assert edits is not None
    assert len(edits.mounts) == 1
    arguments = {hook.args[1]: hook.args[2:] for hook in edits.hooks}
    assert arguments["create-symlinks"] == ("--link", "libcuda.so.580.95.05::/usr/lib64/libcuda.so.1")
    assert arguments["update-ldcache"] == ("--folder", "/usr/lib64")
    assert arguments["enable-cuda-compat"] == ("--host-driver-version=580.95.05",)
    assert {hook.hook_name for hook in edits.hooks} == {"createContainer"}


def test_containers_are_protected_from_a_second_injection() -> None:
    edits = node_spec(given("dgx-h100")).container_edits
    assert edits is not None
    assert edits.env == ("NVIDIA_VISIBLE_DEVICES=void",)


@pytest.mark.parametrize(
    ("kind", "name", "host", "version"),
    [
        ("nvidia.com/gpu", "gpu0", "", "0.3.0"),
        ("nvidia.com/gpu", "0", "", "0.5.0"),
        ("nvidia.com/gpu", "gpu0", "/run/nvidia/driver/dev/nvidia0", "0.5.0"),
        ("nvidia.com/gpu.shared", "gpu0", "", "0.6.0"),
    ],
)
def test_the_version_is_the_least_that_has_the_fields(kind: str, name: str, host: str, version: str) -> None:
    device = CdiDevice(name, ContainerEdits(device_nodes=(DeviceNode("/dev/nvidia0", host),)))
    assert cdi_spec(kind, (device,), ContainerEdits()).cdi_version == version


def test_the_document_has_the_names_of_the_interface_and_no_empty_edits() -> None:
    document = json.loads(spec_bytes(node_spec(given("g6.12xlarge"))))
    assert document["cdiVersion"] == "0.5.0"
    assert document["kind"] == "nvidia.com/gpu"
    assert document["devices"][0] == {"name": "0", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0"}]}}
    assert document["containerEdits"] == {"env": ["NVIDIA_VISIBLE_DEVICES=void"]}


def test_qualified_names_have_the_kind() -> None:
    assert qualified("nvidia.com/gpu", ("0", "all")) == ("nvidia.com/gpu=0", "nvidia.com/gpu=all")
