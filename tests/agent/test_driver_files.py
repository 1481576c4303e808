"""The files of a driver are found below a folder, by the driver's version, and nothing outside of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.agent.cdi.driver_files import driver_files, mig_capabilities, missing_library
from shoal.agent.cdi.spec_file import write_spec
from shoal.devices.cdi_devices import DriverFile
from shoal.devices.cdi_spec import CdiDevice, ContainerEdits, DeviceNode, cdi_spec
from shoal.units.errors import UserError

VERSION = "580.95.05"
FOLDER = "usr/lib/x86_64-linux-gnu"


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def test_libraries_of_the_version_are_found_with_their_links(tmp_path: Path) -> None:
    touch(tmp_path, f"{FOLDER}/libcuda.so.{VERSION}", f"{FOLDER}/libcuda.so.535.1.1", f"{FOLDER}/libc.so.6")
    (tmp_path / FOLDER / "libcuda.so.1").symlink_to(f"libcuda.so.{VERSION}")
    (tmp_path / FOLDER / "libcuda.so").symlink_to("libcuda.so.1")
    host = f"{tmp_path}/{FOLDER}/libcuda.so.{VERSION}"
    links = (f"/{FOLDER}/libcuda.so", f"/{FOLDER}/libcuda.so.1")
    assert driver_files(VERSION, tmp_path).libraries == (DriverFile(host, f"/{FOLDER}/libcuda.so.{VERSION}", links),)


def test_a_library_that_two_folders_lead_to_is_found_once(tmp_path: Path) -> None:
    touch(tmp_path, f"usr/lib64/libcuda.so.{VERSION}")
    (tmp_path / "lib64").symlink_to("usr/lib64")
    assert len(driver_files(VERSION, tmp_path).libraries) == 1


def test_libraries_are_found_in_the_folders_of_the_dynamic_loader(tmp_path: Path) -> None:
    touch(tmp_path, f"opt/driver/lib64/libcuda.so.{VERSION}", f"srv/more/libnvidia-ml.so.{VERSION}")
    touch(tmp_path, "etc/ld.so.conf", "etc/ld.so.conf.d/a.conf", "etc/ld.so.conf.d/b.conf")
    (tmp_path / "etc/ld.so.conf").write_text("include ld.so.conf.d/*.conf  # more\ninclude /etc/ld.so.conf\n")
    (tmp_path / "etc/ld.so.conf.d/a.conf").write_text("# the driver\n/opt/driver/lib64\n")
    (tmp_path / "etc/ld.so.conf.d/b.conf").write_text("/srv/more/\n/opt/driver/lib64\n/../outside\n")
    touch(tmp_path.parent, f"outside/libcuda.so.{VERSION}")
    assert [one.container for one in driver_files(VERSION, tmp_path).libraries] == [
        f"/opt/driver/lib64/libcuda.so.{VERSION}",
        f"/srv/more/libnvidia-ml.so.{VERSION}",
    ]


def test_a_link_out_of_the_root_is_left_out(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.touch()
    root = tmp_path / "root"
    touch(root, f"{FOLDER}/libcuda.so.{VERSION}")
    (root / FOLDER / f"libnvidia-ml.so.{VERSION}").symlink_to(outside)
    names = [one.container for one in driver_files(VERSION, root).libraries]
    assert names == [f"/{FOLDER}/libcuda.so.{VERSION}"]


def test_programs_sockets_firmware_and_device_nodes_that_exist_are_found(tmp_path: Path) -> None:
    touch(
        tmp_path,
        "usr/bin/nvidia-smi",
        "run/nvidia-persistenced/socket",
        f"lib/firmware/nvidia/{VERSION}/gsp_ga10x.bin",
        "dev/nvidiactl",
        "dev/nvidia-uvm",
    )
    found = driver_files(VERSION, tmp_path)
    assert [one.container for one in found.programs] == [
        "/usr/bin/nvidia-smi",
        f"/lib/firmware/nvidia/{VERSION}/gsp_ga10x.bin",
    ]
    assert [one.container for one in found.sockets] == ["/run/nvidia-persistenced/socket"]
    assert found.nodes == ("/dev/nvidiactl", "/dev/nvidia-uvm")


def test_capabilities_are_read_and_other_lines_are_left_out(tmp_path: Path) -> None:
    touch(tmp_path, "driver/nvidia-caps/mig-minors")
    (tmp_path / "driver/nvidia-caps/mig-minors").write_text(
        "config 1\ngpu0/gi1/access 12\nodd\ngpu0/gi1/ci0/access x\n"
    )
    assert mig_capabilities(tmp_path) == {"config": 1, "gpu0/gi1/access": 12}


def test_without_mig_there_are_no_capabilities(tmp_path: Path) -> None:
    assert mig_capabilities(tmp_path) == {}


SPEC = cdi_spec(
    "nvidia.com/gpu", (CdiDevice("gpu0", ContainerEdits(device_nodes=(DeviceNode("/dev/nvidia0"),))),), ContainerEdits()
)


def test_a_specification_is_written_once_and_readable_by_every_user(tmp_path: Path) -> None:
    path = tmp_path / "cdi/nvidia.json"
    assert write_spec(SPEC, path)
    before = path.stat().st_mtime_ns
    assert not write_spec(SPEC, path)
    assert path.stat().st_mtime_ns == before
    assert path.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in path.parent.iterdir()] == ["nvidia.json"]


def test_a_place_that_cannot_be_written_is_a_user_error_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "cdi").touch()
    with pytest.raises(UserError) as error:
        write_spec(SPEC, tmp_path / "cdi/nvidia.json")
    assert str(tmp_path / "cdi/nvidia.json") in str(error.value)


def test_what_containers_would_lack_is_named(tmp_path: Path) -> None:
    words = missing_library(driver_files(VERSION, tmp_path), VERSION, tmp_path)
    assert words.startswith(f"libcuda.so.{VERSION} was not found below {tmp_path}, so containers cannot use CUDA")
    touch(tmp_path, f"{FOLDER}/libcuda.so.{VERSION}")
    assert missing_library(driver_files(VERSION, tmp_path), VERSION, tmp_path) == ""
