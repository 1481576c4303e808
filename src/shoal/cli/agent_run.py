"""Implements `shoal agent run`: all parts of a node's agent in one process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.agent_options import DefaultConfig, FakeMachine, MigStrategy
from shoal.cli.cluster_access import AccessOptions
from shoal.cli.log_options import LoggingOptions
from shoal.cli.option_groups import with_options
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.wiring.agent_node_parts import NodePartSettings
    from shoal.wiring.gpu_sharing import SharingOptions


@dataclass(frozen=True, kw_only=True)
class PluginOptions:
    """Of NVIDIA's device plugin, with the variables that it reads."""

    mig_strategy: MigStrategy = ""
    device_list_strategy: Annotated[
        str,
        typer.Option(
            "--device-list-strategy",
            metavar="LIST",
            envvar="DEVICE_LIST_STRATEGY",
            help="How containers get devices: of envvar, volume-mounts, cdi-annotations and cdi-cri.",
        ),
    ] = ""
    device_id_strategy: Annotated[
        str,
        typer.Option("--device-id-strategy", metavar="NAME", envvar="DEVICE_ID_STRATEGY", help="uuid or index."),
    ] = ""
    pass_device_specs: Annotated[
        bool | None,
        typer.Option(
            "--pass-device-specs/--no-pass-device-specs",
            envvar="PASS_DEVICE_SPECS",
            help="Whether containers get the device nodes too.",
        ),
    ] = None
    driver_root: Annotated[
        str,
        typer.Option(
            "--driver-root",
            metavar="DIR",
            envvar="NVIDIA_DRIVER_ROOT",
            help="The folder of the host in which the driver is installed.",
        ),
    ] = ""
    mps_root: Annotated[
        str, typer.Option("--mps-root", metavar="DIR", envvar="MPS_ROOT", help="The folder of MPS on the host.")
    ] = ""
    fail_on_init_error: Annotated[
        bool | None,
        typer.Option(
            "--fail-on-init-error/--no-fail-on-init-error",
            envvar="FAIL_ON_INIT_ERROR",
            help="Whether it is an error if there is no driver; otherwise the agent waits for it.",
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """Those that are set, by the names of the plugin's flags."""
        found: dict[str, Any] = {name: value for name, value in vars(self).items() if value not in ("", None)}
        if self.device_list_strategy:
            found["device_list_strategy"] = tuple(part.strip() for part in self.device_list_strategy.split(","))
        return found


@dataclass(frozen=True, kw_only=True)
class NodeOptions:
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="PATH",
            envvar="CONFIG_FILE",
            help="The plugin's configuration: a file, or a folder of which the Node's label names a file.",
        ),
    ] = None
    default_config: DefaultConfig = ""
    device_plugin_dir: Annotated[
        Path, typer.Option("--device-plugin-dir", metavar="DIR", help="The kubelet's folder for device plugins.")
    ] = Path("/var/lib/kubelet/device-plugins")
    pod_resources: Annotated[
        Path, typer.Option("--pod-resources", metavar="SOCKET", help="The kubelet's socket for devices of pods.")
    ] = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
    cdi_dir: Annotated[
        Path | None,
        typer.Option(
            "--cdi-dir",
            metavar="DIR",
            help="Where the CDI specification is written; by default /var/run/cdi, nowhere with --fake.",
        ),
    ] = None
    node: Annotated[
        str,
        typer.Option(
            "--node",
            metavar="NAME",
            envvar="NODE_NAME",
            help="The Node of this machine. Without it no cluster is asked.",
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True)
class PartOptions:
    """The parts beyond the device plugin and the health."""

    metrics: Annotated[
        str,
        typer.Option(
            "--metrics", metavar="HOST:PORT", help="Serve the metrics of the GPUs there, as shoal agent export."
        ),
    ] = ""
    labels: Annotated[
        bool, typer.Option("--labels/--no-labels", help="Write the labels of the Node, as shoal agent labels.")
    ] = False
    mig: Annotated[
        bool,
        typer.Option(
            "--mig/--no-mig", help="Follow the label nvidia.com/mig.config of the Node, as shoal agent mig run."
        ),
    ] = False
    mig_config_file: Annotated[
        Path | None,
        typer.Option("--mig-config-file", metavar="FILE", help="MIG layouts; by default those generated for the GPUs."),
    ] = None
    gpu_clients_namespace: Annotated[
        str,
        typer.Option(
            "--gpu-clients-namespace",
            metavar="NAME",
            envvar="DEFAULT_GPU_CLIENTS_NAMESPACE",
            help="The namespace of the GPU clients that are stopped for a change of the MIG layout.",
        ),
    ] = "gpu-operator"
    health_taint: Annotated[
        str,
        typer.Option(
            "--health-taint",
            metavar="TAINT",
            help="Taint the Node while a GPU is unhealthy, such as gpu-health=failed:NoSchedule.",
        ),
    ] = ""
    mps_control: Annotated[
        str,
        typer.Option(
            "--mps-control",
            metavar="PROGRAM",
            envvar="MPS_CONTROL",
            help="The program of MPS daemons; by default nvidia-cuda-mps-control, none with --fake.",
        ),
    ] = ""
    time_slice: Annotated[
        str,
        typer.Option(
            "--time-slice",
            metavar="INTERVAL",
            envvar="TIME_SLICE",
            help="Of GPUs that time-slicing shares: default, short, medium or long. Without it nothing is set.",
        ),
    ] = ""
    vgpu_library: Annotated[
        Path,
        typer.Option(
            "--vgpu-library",
            metavar="FILE",
            help="HAMi's library. Without it limits of virtual GPUs are not enforced, and an Event of the pod says so.",
        ),
    ] = Path("/usr/local/vgpu/libvgpu.so")
    dra: Annotated[
        bool,
        typer.Option("--dra/--no-dra", help="Give GPUs to resource claims (DRA) instead of by the device plugin."),
    ] = False
    dra_dynamic_mig: Annotated[
        bool,
        typer.Option(
            "--dra-dynamic-mig/--no-dra-dynamic-mig",
            help="With --dra: offer all MIG instances that the GPUs can have, and create those that claims get.",
        ),
    ] = False
    driver_plugins_dir: Annotated[
        Path, typer.Option("--driver-plugins-dir", metavar="DIR", help="The kubelet's folder for drivers of claims.")
    ] = Path("/var/lib/kubelet/plugins")
    plugin_registry_dir: Annotated[
        Path, typer.Option("--plugin-registry-dir", metavar="DIR", help="Where the kubelet looks for such drivers.")
    ] = Path("/var/lib/kubelet/plugins_registry")

    def needing_cluster(self) -> str:
        """The first option that is set and needs the Node; empty without one."""
        named = {
            "--labels": self.labels,
            "--mig": self.mig,
            "--health-taint": bool(self.health_taint),
            "--dra": self.dra,
        }
        return next((name for name, is_set in named.items() if is_set), "")

    def sharing(self) -> SharingOptions:
        from shoal.agent.sharing.time_slice import TIME_SLICES
        from shoal.wiring.gpu_sharing import SharingOptions

        chosen = next((one for one in TIME_SLICES if one == self.time_slice), None)
        if self.time_slice and chosen is None:
            raise UserError(
                f"unknown interval: {self.time_slice}",
                where=Where(path="--time-slice"),
                fix=f"use one of {', '.join(TIME_SLICES)}",
            )
        return SharingOptions(self.mps_control, chosen, self.vgpu_library)


@dataclass(frozen=True, kw_only=True)
class AgentLogging(LoggingOptions):
    log_level: Annotated[
        str,
        typer.Option(
            "--log-level",
            metavar="LEVEL",
            help="The lowest level that is logged: debug, info, warning or error.",
        ),
    ] = "info"


@with_options
def run(
    *,
    fake: FakeMachine = "",
    plugin: PluginOptions,
    node: NodeOptions,
    parts: PartOptions,
    access: AccessOptions,
    logs: AgentLogging,
) -> None:
    """Run the agent of this machine: its GPUs for the kubelet, and their health. Ctrl-C ends it.

    With --node the condition GPUHealthy of the Node, and Events about faults, are written too.
    """
    from shoal.agent.parts import end_despite, stop_at_signals
    from shoal.wiring.node_agent import AgentSettings, run_agent

    logs.set_up()
    _check_folders(node, parts)
    option = parts.needing_cluster()
    if option and not node.node:
        raise UserError("needs the Node of this machine", where=Where(path=option), fix="name it with --node")
    cdi_folder = node.cdi_dir or (None if fake else Path("/var/run/cdi"))
    chosen = _parts(parts, cdi_folder)
    settings = AgentSettings(
        fake=fake,
        folder=node.device_plugin_dir,
        pod_resources=node.pod_resources,
        cdi_folder=cdi_folder,
        config=node.config,
        default_config=node.default_config,
        flags=plugin.given(),
        sharing=parts.sharing(),
        node=node.node,
        access=access.access_for_change() if node.node else None,
        parts=chosen,
    )
    end_despite(run_agent(settings, stop_at_signals()))


def _check_folders(node: NodeOptions, parts: PartOptions) -> None:
    """Raises `UserError` for a folder of the kubelet that does not exist."""
    needed = {"--device-plugin-dir": (node.device_plugin_dir, "device plugins")}
    if parts.dra:
        needed = {
            "--driver-plugins-dir": (parts.driver_plugins_dir, "drivers of claims"),
            "--plugin-registry-dir": (parts.plugin_registry_dir, "registrations"),
        }
    for option, (folder, purpose) in needed.items():
        if not folder.is_dir():
            raise UserError(
                "there is no such folder",
                where=Where(path=option, file=str(folder)),
                fix=f"start the kubelet first, or name its folder for {purpose}",
            )


def _parts(options: PartOptions, cdi_folder: Path | None) -> NodePartSettings:
    from shoal.agent.exporter.metrics_server import listen_address
    from shoal.devices.health_reports import parse_taint
    from shoal.wiring.agent_node_parts import MigChoice, NodePartSettings

    claims = None
    if options.dra_dynamic_mig and not options.dra:
        raise UserError("is for resource claims", where=Where(path="--dra-dynamic-mig"), fix="add --dra")
    if options.dra:
        from shoal.agent.dra.claim_driver import ClaimFolders

        if cdi_folder is None:
            what = "needs a folder for the specifications of devices"
            raise UserError(what, where=Where(path="--dra"), fix="name one with --cdi-dir")
        claims = ClaimFolders(options.driver_plugins_dir, options.plugin_registry_dir, cdi_folder)
    return NodePartSettings(
        metrics=listen_address(options.metrics) if options.metrics else None,
        taint=parse_taint(options.health_taint) if options.health_taint else None,
        has_labels=options.labels,
        mig=MigChoice(options.gpu_clients_namespace, options.mig_config_file) if options.mig else None,
        claims=claims,
        has_dynamic_mig=options.dra_dynamic_mig,
    )
