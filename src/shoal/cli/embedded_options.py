"""Options for what runs beside the embedded API server: read from the command line, checked, and passed on to a
detached server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from shoal.cli.cluster_folder import history_folder
from shoal.cli.history_use import HistoryUse
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.api.admission_settings import RuleMode
    from shoal.autoscale.scaled_objects.trigger_addresses import TriggerAddresses
    from shoal.embedded.cloud.settings import CloudSettings
    from shoal.embedded.machines.machine import Machine
    from shoal.embedded.snapshots.creation import SnapshotStart
    from shoal.wiring.cluster_options import ClusterOptions
    from shoal.wiring.run_choice import RunChoice

NONE = "none"
DEFAULT_NODES = "2xp5.48xlarge"
_FILES = (".yaml", ".yml")

Speed = Annotated[
    float, typer.Option(min=0.01, max=3600.0, metavar="N", help="Seconds that pass in the cluster per real second.")
]
Stages = Annotated[
    list[Path] | None,
    typer.Option(metavar="DIR", help="Folder with stage files for simulated pods; may be given several times."),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        min=0, max=65535, metavar="PORT", help="The port of the nodes' metrics; by default 9400 or any free one."
    ),
]

RuntimeEndpoint = Annotated[
    str,
    typer.Option(
        metavar="SOCKET",
        help="The socket of this machine's container runtime, or none; by default that of containerd or CRI-O.",
    ),
]
GpuConfigPath = Annotated[
    Path | None,
    typer.Option(
        "--gpu-config",
        metavar="PATH",
        help="The device plugin's configuration of this machine: a file, or a folder for the Node's label.",
    ),
]
TriggerNetworks = Annotated[
    list[str] | None,
    typer.Option(
        "--trigger-network",
        metavar="CIDR",
        help="A network of loopback or link-local addresses that triggers of ScaledObjects may ask; may be given "
        "several times.",
    ),
]
WithContention = Annotated[
    bool, typer.Option("--contention/--no-contention", help="Whether pods that share a GPU slow each other down.")
]

CloudOption = Annotated[
    str,
    typer.Option(
        "--cloud",
        metavar="FILE",
        help="How the simulated cloud behaves that provides the nodes of NodePools: boot times, capacity, spot "
        "market, failures; or none.",
    ),
]


class GpuSoftwareMode(StrEnum):
    """Which GPU software simulated nodes have at their start; a test compares it with machines/gpu_software.py."""

    INCLUDED = "included"
    PODS = "pods"
    DRIVER = "driver"
    DRIVER_AND_TOOLKIT = "driver+toolkit"


USUAL_SOFTWARE = GpuSoftwareMode.INCLUDED
GpuSoftwareOption = Annotated[
    GpuSoftwareMode,
    typer.Option(help="The GPU software that nodes have at their start; pods of a GPU operator add the rest."),
]


class Scheduler(StrEnum):
    """The program that places pods and admits jobs in the embedded cluster."""

    SHOAL = "shoal"
    SIMPLE = "simple"
    """One pod at a time by kube-scheduler's rules; no queues."""


USUAL_SCHEDULER = Scheduler.SHOAL
SchedulerOption = Annotated[
    Scheduler,
    typer.Option(help="Shoal's scheduler and queues, or a simple stand-in for kube-scheduler."),
]


class EmbeddedOptions(msgspec.Struct, frozen=True, kw_only=True):
    nodes: str = DEFAULT_NODES
    has_controllers: bool = True
    scheduler: Scheduler = USUAL_SCHEDULER
    speed: float = 1.0
    gpu_software: GpuSoftwareMode = USUAL_SOFTWARE
    stages: tuple[Path, ...] = ()
    metrics_port: int | None = None
    kubelet_port: int = 0
    kubelet_address: str = ""
    has_contention: bool = True
    has_foreign: bool = True
    trigger_networks: tuple[str, ...] = ()
    is_split: bool = False
    """Server and clients in processes of their own."""
    is_this_machine: bool = False
    """This machine is a node, beside the simulated ones."""
    runtime_endpoint: str = ""
    gpu_config: Path | None = None
    admission_rules: RuleMode | None = None
    """The mode of the admission rules; None: they are not installed."""
    snapshot: Path | None = None
    """The objects to start with."""
    cloud: str = ""
    """The file with the behaviour of the simulated cloud; empty: the usual behaviour."""
    history_use: HistoryUse = HistoryUse()
    clock: str = ""
    """A moment of the server's process, if that is our parent."""

    def arguments(self) -> list[str]:
        """The same choice for another process, wherever that runs."""
        words = ["--nodes", _absolute(self.nodes), "--speed", f"{self.speed:g}"]
        words += [] if self.has_controllers else ["--no-controllers"]
        words += [] if self.has_foreign else ["--no-foreign-kinds"]
        words += [word for one in self.trigger_networks for word in ("--trigger-network", one)]
        words += [] if self.scheduler is USUAL_SCHEDULER else ["--scheduler", self.scheduler.value]
        words += ["--this-machine"] if self.is_this_machine else []
        words += ["--runtime-endpoint", absolute_socket(self.runtime_endpoint)] if self.runtime_endpoint else []
        words += ["--gpu-config", str(self.gpu_config.expanduser().absolute())] if self.gpu_config is not None else []
        words += [] if self.admission_rules is None else ["--admission-rules", self.admission_rules]
        words += ["--from", str(self.snapshot.expanduser().absolute())] if self.snapshot is not None else []
        words += ["--cloud", self.cloud if self.cloud == NONE else _absolute_file(self.cloud)] if self.cloud else []
        words += self._of_nodes() + self.history_use.arguments()
        return [*words, "--processes"] if self.is_split else words

    def _of_nodes(self) -> list[str]:
        words = [word for folder in self.stages for word in ("--stages", str(folder.expanduser().absolute()))]
        words += [] if self.gpu_software is USUAL_SOFTWARE else ["--gpu-software", self.gpu_software.value]
        words += [] if self.metrics_port is None else ["--metrics-port", str(self.metrics_port)]
        return words if self.has_contention else [*words, "--no-contention"]

    def parts(self, kubeconfig: Path, folder: Path | None = None) -> tuple[tuple[str, ...], ...]:
        """The commands of processes that do the clients' part. `folder`: the cluster's."""
        common = ("--kubeconfig", str(kubeconfig), "--speed", f"{self.speed:g}")
        parts: list[tuple[str, ...]] = []
        if self.has_controllers:
            parts.append(("cluster", "controllers", *common, "--scheduler", self.scheduler.value))
        if self.has_shoal:
            from shoal.wiring.run_choice import OWN_NAMES

            names = (word for name in OWN_NAMES for word in ("--scheduler-name", name))
            recorded = () if folder is None else ("--history", str(history_folder(folder)))
            used = self.history_use.arguments() if recorded else ()
            parts.append(("run", "--no-leader-elect", "--child", *names, *recorded, *used, *common))
        if self.nodes != NONE:
            nodes = ("--nodes", _absolute(self.nodes), *self._of_nodes())
            parts.append(("cluster", "nodes", *nodes, *common))
        return tuple(parts)

    @property
    def has_shoal(self) -> bool:
        return self.has_controllers and self.scheduler is Scheduler.SHOAL

    def _cloud(self) -> CloudSettings | None:
        """None where no controller could use it."""
        if self.cloud == NONE:
            return None
        if not self.has_shoal or not self.has_foreign or self.is_split or self.is_this_machine or self.clock:
            if self.cloud:
                what = "--cloud needs Shoal's scheduler and the kinds of other projects, in one process"
                fix = "leave out --no-controllers, --scheduler, --no-foreign-kinds, --processes and --this-machine"
                raise UserError(what, fix=fix)
            return None
        if self.snapshot is not None and not self.cloud:
            # The machines of a copied cluster are in another cloud.
            return None
        from shoal.cli.cloud_file import cloud_of_file

        return cloud_of_file(self.cloud)

    def to_cluster_options(self, kubeconfig: Path | None = None, folder: Path | None = None) -> ClusterOptions:
        """Raises UserError for what cannot be read: before anything is started or written. `folder`: the cluster's."""
        from shoal.wiring.cluster_clock import ClockReading
        from shoal.wiring.cluster_options import ClusterOptions
        from shoal.wiring.controllers import CONTROLLERS, DEFAULT_SCHEDULER

        start = self._start()
        machines = self._machines() if start is None else (*(each.machine for each in start.nodes), *self._machines())
        self._check_this_machine()
        if self.admission_rules is not None and (self.is_split or not self.has_shoal):
            raise UserError("--admission-rules needs Shoal's controllers in the process of the cluster")
        _check_names(machines)
        if self.stages:
            from shoal.embedded.kubelets.stage_files import read_stages

            read_stages(self.stages)
        if self.is_split and kubeconfig is not None:
            return ClusterOptions(
                speed=self.speed, children=self.parts(kubeconfig, folder), has_foreign=self.has_foreign
            )
        cloud = self._cloud()
        return ClusterOptions(
            machines=machines,
            cloud=cloud,
            controllers=tuple(
                name
                for name in (CONTROLLERS if self.has_controllers else ())
                if name != DEFAULT_SCHEDULER or self.scheduler is Scheduler.SIMPLE
            ),
            shoal=self._shoal(folder, cloud) if self.has_shoal and not self.clock else None,
            since=ClockReading.read(self.clock) if self.clock else None,
            is_child=bool(self.clock),
            speed=self.speed,
            stages=self.stages,
            metrics_port=self.metrics_port,
            kubelet_port=self.kubelet_port,
            kubelet_address=self.kubelet_address,
            has_contention=self.has_contention,
            has_foreign=self.has_foreign,
            trigger_addresses=trigger_addresses(self.trigger_networks),
            snapshot=start,
            this_machine=folder / "this-machine" if self.is_this_machine and folder is not None else None,
            runtime_endpoint=self.runtime_endpoint,
            gpu_config=self.gpu_config,
        )

    def _check_this_machine(self) -> None:
        if self.is_this_machine and self.speed != 1.0:
            raise UserError("--speed does not go with --this-machine: processes run in real time")
        if self.is_this_machine and self.is_split:
            raise UserError("--processes does not go with --this-machine")
        if self.gpu_config is not None:
            if not self.is_this_machine:
                raise UserError("--gpu-config is only for --this-machine")
            from shoal.wiring.gpu_configs import check_gpu_config

            check_gpu_config(self.gpu_config)
        if self.runtime_endpoint and not self.is_this_machine:
            raise UserError("--runtime-endpoint is only for --this-machine")
        if self.runtime_endpoint:
            from shoal.agent.kubelet.cri.endpoint import runtime_socket

            runtime_socket(self.runtime_endpoint)

    def _shoal(self, folder: Path | None, cloud: CloudSettings | None) -> RunChoice:
        from shoal.api.admission_settings import AdmissionSettings
        from shoal.api.run_configuration import RunConfiguration
        from shoal.cli.run import run_choice
        from shoal.cli.run_files import RunFiles
        from shoal.wiring.run_choice import NODE_SCALING, OWN_NAMES

        admission = AdmissionSettings()
        if self.admission_rules is not None:
            admission = AdmissionSettings(enabled=True, mode=self.admission_rules)
        choice = run_choice(RunFiles(RunConfiguration(scheduler_names=OWN_NAMES, admission=admission)))
        choice = msgspec.structs.replace(choice, has_kube_state=True)
        if cloud is not None:
            choice = msgspec.structs.replace(choice, cloud=cloud, controllers=(*choice.controllers, NODE_SCALING))
        if folder is not None:
            choice = msgspec.structs.replace(choice, history=history_folder(folder))
        return self.history_use.of(choice)

    def _start(self) -> SnapshotStart | None:
        if self.snapshot is None:
            return None
        if self.is_split:
            raise UserError("--processes does not go with --from")
        if not self.has_foreign:
            raise UserError("--no-foreign-kinds does not go with --from: a snapshot has such kinds")
        from shoal.embedded.snapshots.creation import snapshot_start
        from shoal.embedded.snapshots.reading import read_objects

        return snapshot_start(read_objects(self.snapshot.expanduser()), self.snapshot)

    def _machines(self) -> tuple[Machine, ...]:
        if self.nodes == NONE:
            return ()
        from shoal.embedded.machines.fleet_spec import read_fleet

        return read_fleet(self.nodes, self.gpu_software.value)


def _check_names(machines: Sequence[Machine]) -> None:
    names = Counter(each.name for each in machines)
    twice = next((name for name, count in names.items() if count > 1), "")
    if twice:
        fix = "name the new machines: --nodes 2xp5.48xlarge[name=new]"
        raise UserError(f"two nodes are called {twice}", where=Where(path="--nodes"), fix=fix)


def fleet_of(nodes: Sequence[str] | None) -> str:
    """What `--nodes` says, given once, several times or not at all."""
    return ",".join(nodes) if nodes else DEFAULT_NODES


def _absolute(nodes: str) -> str:
    return ",".join(_absolute_file(part) if part.lower().endswith(_FILES) else part for part in nodes.split(","))


def _absolute_file(part: str) -> str:
    return str(Path(part.strip()).expanduser().absolute())


def absolute_socket(endpoint: str) -> str:
    return endpoint if endpoint == NONE else _absolute_file(endpoint.removeprefix("unix://"))


def trigger_addresses(networks: Sequence[str]) -> TriggerAddresses:
    """Raises UserError."""
    from shoal.autoscale.scaled_objects.trigger_addresses import OPTION, TriggerAddresses, read_network

    found = []
    for text in networks:
        try:
            found.append(read_network(text))
        except ValueError:
            fix = "write a network such as 127.0.0.0/8"
            raise UserError(f'"{text}" is not a network', where=Where(path=OPTION), fix=fix) from None
    return TriggerAddresses(tuple(found))
