"""Implements `shoal agent cdi`: the CDI specification of this machine's GPUs."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.agent_options import FakeMachine
from shoal.cli.known_names import check_known
from shoal.cli.option_groups import with_options
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.devices.cdi_devices import CdiInput
    from shoal.devices.port import GpuDriver

_NAMINGS = ("index", "type-index", "uuid")


@dataclasses.dataclass(frozen=True)
class CdiOptions:
    kind: Annotated[str, typer.Option("--kind", metavar="VENDOR/CLASS", help="The kind of the devices.")] = (
        "nvidia.com/gpu"
    )
    naming: Annotated[
        str,
        typer.Option("--naming", metavar="FORMS", help="The forms of names, of index, type-index and uuid."),
    ] = ",".join(_NAMINGS)
    driver_root: Annotated[Path, typer.Option("--driver-root", help="The folder in which the driver is installed.")] = (
        Path("/")
    )
    dev_root: Annotated[
        str,
        typer.Option("--dev-root", metavar="DIR", help="The folder that has the driver's /dev; else --driver-root."),
    ] = ""


@with_options
def cdi(
    *,
    fake: FakeMachine = "",
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="Where to write; - is standard output.")] = "-",
    options: CdiOptions,
) -> None:
    """Write the CDI specification of this machine's GPUs and MIG instances.

    The file is replaced whole, and only if it changes.
    """
    from shoal.agent.cdi.spec_file import spec_bytes, write_spec
    from shoal.agent.patient_driver import PatientDriver
    from shoal.devices.cdi_devices import node_spec
    from shoal.wiring.gpu_driver import open_driver

    _check_kind(options.kind)
    driver = PatientDriver(lambda: open_driver(fake))
    try:
        spec = node_spec(_given(driver, options, is_simulated=bool(fake)), options.kind)
    finally:
        driver.close()
    if out == "-":
        sys.stdout.write(spec_bytes(spec).decode())
        return
    is_changed = write_spec(spec, Path(out))
    typer.echo(f"{out}: {len(spec.devices)} devices" + ("" if is_changed else ", unchanged"), err=True)


def _given(driver: GpuDriver, options: CdiOptions, *, is_simulated: bool) -> CdiInput:
    from shoal.agent.cdi.driver_files import driver_files, mig_capabilities, missing_library
    from shoal.devices.cdi_devices import NAMINGS, CdiInput, DriverFiles

    wanted = [word.strip() for word in options.naming.split(",")]
    for word in wanted:
        check_known(word, _NAMINGS, "form of names", Where(path="--naming"))
    gpus, version = driver.gpus().gpus, driver.versions().driver
    if is_simulated:
        from shoal.embedded.gpus.simulated_driver import simulated_capabilities

        capabilities, files = simulated_capabilities(gpus), DriverFiles()
    else:
        capabilities = mig_capabilities()
        files = driver_files(version, options.driver_root, Path(options.dev_root) if options.dev_root else None)
        missing = missing_library(files, version, options.driver_root)
        if missing:
            typer.echo(f"shoal: warning: {missing}", err=True)
    return CdiInput(
        gpus=gpus,
        driver=version,
        files=files,
        capabilities=capabilities,
        namings=tuple(one for one in NAMINGS if one in wanted),
        dev_root=options.dev_root or str(options.driver_root),
    )


def _check_kind(kind: str) -> None:
    vendor, _, name = kind.partition("/")
    if not _is_name(vendor, "-._") or not _is_name(name, "-._"):
        raise UserError(f"{kind} is no kind of CDI devices", where=Where(path="--kind"), fix="such as nvidia.com/gpu")


def _is_name(text: str, between: str) -> bool:
    plain = text
    for letter in between:
        plain = plain.replace(letter, "")
    return bool(text) and text.isascii() and plain.isalnum() and text[0].isalpha() and text[-1].isalnum()
