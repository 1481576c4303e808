"""Implements `shoal agent labels`: the labels of this machine's node."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.agent_options import FakeMachine, HostNode, MigStrategy, host_node
from shoal.cli.cluster_access import AccessOptions, in_one_line
from shoal.cli.formats import TEXTS, TextOutput, checked
from shoal.cli.known_names import check_known
from shoal.cli.option_groups import with_options
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.devices.node_metadata import NodeMetadata
    from shoal.wiring.node_labels import Target

_DESTINATIONS = ("node", "nfd-file", "node-feature")


@dataclasses.dataclass(frozen=True)
class LabelOptions:
    mig_strategy: MigStrategy = ""
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="PATH",
            envvar="CONFIG_FILE",
            help="The device plugin's configuration: a file, or a folder with one for each kind of node.",
        ),
    ] = None
    default_config: Annotated[
        str,
        typer.Option(
            "--default-config", metavar="NAME", envvar="DEFAULT_CONFIG", help="The file of a Node without the label."
        ),
    ] = ""
    machine_type_file: Annotated[
        str,
        typer.Option(
            "--machine-type-file",
            metavar="FILE",
            envvar="GFD_MACHINE_TYPE_FILE",
            help="The file with the product name; by default that of the firmware.",
        ),
    ] = ""
    fail_on_init_error: Annotated[
        bool | None,
        typer.Option(
            "--fail-on-init-error/--no-fail-on-init-error",
            envvar="FAIL_ON_INIT_ERROR",
            help="Whether it is an error if there is no driver; otherwise its PCI devices are labelled.",
        ),
    ] = None
    pci_only: Annotated[
        bool,
        typer.Option("--pci-only", help="Only whether the machine has GPUs, by its PCI devices; no driver is asked."),
    ] = False
    no_timestamp: Annotated[
        bool, typer.Option("--no-timestamp", envvar="GFD_NO_TIMESTAMP", help="Without the label gfd.timestamp.")
    ] = False


@dataclasses.dataclass(frozen=True)
class WriteOptions:
    write: Annotated[
        str,
        typer.Option("--write", metavar="WHERE", help="node, nfd-file or node-feature. Without it, they are printed."),
    ] = ""
    once: Annotated[bool, typer.Option("--once", envvar="GFD_ONESHOT", help="Write once and end.")] = False
    interval: Annotated[
        str,
        typer.Option(
            "--interval",
            metavar="TIME",
            envvar="GFD_SLEEP_INTERVAL",
            help="How often labels are written again: 60s, 5m, infinite.",
        ),
    ] = ""
    output_file: Annotated[
        str,
        typer.Option("--output-file", metavar="FILE", envvar="GFD_OUTPUT_FILE", help="The file of --write nfd-file."),
    ] = ""
    node: HostNode = ""
    namespace: Annotated[
        str,
        typer.Option(
            "-n", "--namespace", metavar="NAME", envvar="NAMESPACE", help="The namespace of --write node-feature."
        ),
    ] = "default"


@with_options
def labels(
    *,
    fake: FakeMachine = "",
    output: TextOutput = TEXTS[0],
    options: LabelOptions,
    writing: WriteOptions,
    access: AccessOptions,
) -> None:
    """Print the labels of this machine's node, or write them and keep them true.

    They are those of NVIDIA's GPU feature discovery, and labels and annotations for Shoal's scheduler.
    """
    checked(output, TEXTS)
    if writing.write:
        check_known(writing.write, _DESTINATIONS, "destination", Where(path="--write"))
    if options.mig_strategy:
        from shoal.devices.plugin_flags import MIG_STRATEGIES

        check_known(options.mig_strategy, sorted(MIG_STRATEGIES), "MIG strategy", Where(path="--mig-strategy"))
    import msgspec

    from shoal.wiring.gpu_driver import open_driver, type_of_fake
    from shoal.wiring.node_labels import label_settings, label_source, read_labels, write_labels

    settings, notes = label_settings(options.config, *_flags(options, writing), options.default_config)
    settings = msgspec.structs.replace(settings, is_pci_only=options.pci_only)
    for note in notes:
        typer.echo(f"{options.config}: {note}", err=True)
    target = _target(writing, access) if writing.write else None
    source = label_source(lambda: open_driver(fake), settings, type_of_fake(fake) if fake else None)
    try:
        if target is None:
            _print(_read(lambda: read_labels(source, settings)), output)
        elif target.access is None:
            write_labels(source, target, settings, _tell)
        else:
            with in_one_line(target.access):
                write_labels(source, target, settings, _tell)
    finally:
        source.close()


def _flags(options: LabelOptions, writing: WriteOptions) -> tuple[dict[str, Any], dict[str, Any]]:
    """The flags that are given, by the names of the device plugin's flags."""
    from shoal.devices.plugin_flags import interval_ns
    from shoal.devices.plugin_resources import PluginConfigError

    given: dict[str, Any] = {"mig_strategy": options.mig_strategy} if options.mig_strategy else {}
    if options.fail_on_init_error is not None:
        given["fail_on_init_error"] = options.fail_on_init_error
    features: dict[str, Any] = {}
    if options.machine_type_file:
        features["machine_type_file"] = options.machine_type_file
    if options.no_timestamp:
        features["no_timestamp"] = True
    if writing.once:
        features["oneshot"] = True
    if writing.output_file:
        features["output_file"] = writing.output_file
    if writing.interval:
        try:
            features["sleep_interval_ns"] = interval_ns(writing.interval, "--interval")
        except PluginConfigError as error:
            raise UserError(str(error), fix="as in 60s, 5m or infinite") from error
    return given, features


def _target(writing: WriteOptions, access: AccessOptions) -> Target:
    import os

    from shoal.wiring.node_labels import Target

    if writing.write == "nfd-file":
        return Target("nfd-file")
    return Target(
        "node" if writing.write == "node" else "node-feature",
        node=host_node(writing.node),
        namespace=writing.namespace,
        pod=os.environ.get("POD_NAME", ""),
        access=access.access_for_change(),
    )


def _read(read: Any) -> NodeMetadata:
    from shoal.devices.feature_labels import FeatureError

    try:
        found: NodeMetadata = read()
    except FeatureError as error:
        raise UserError(str(error), fix="change the configuration, or the MIG mode of the GPUs") from error
    return found


def _print(found: NodeMetadata, output: str) -> None:
    if output != TEXTS[0]:
        from shoal.cli.formats import write

        write(found, output)
        return
    for name, value in found.labels.items():
        typer.echo(f"{name}={value}")
    for name, value in found.annotations.items():
        typer.echo(f"annotation {name}={value}")
    for line in found.left_out:
        typer.echo(line, err=True)


def _tell(line: str) -> None:
    typer.echo(line, err=True)
