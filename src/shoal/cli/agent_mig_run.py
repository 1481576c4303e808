"""Implements `shoal agent mig run`: the layout of the Node's label on this machine's GPUs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.agent_options import FakeMachine, HostNode, host_node
from shoal.cli.cluster_access import AccessOptions
from shoal.cli.option_groups import with_options


@dataclasses.dataclass(frozen=True)
class FollowOptions:
    file: Annotated[
        Path | None,
        typer.Option(
            "-f",
            "--config-file",
            metavar="FILE",
            envvar="CONFIG_FILE",
            help="A file of mig-parted; else the layouts that are generated for the GPUs.",
        ),
    ] = None
    node: HostNode = ""
    namespace: Annotated[
        str,
        typer.Option(
            "-n",
            "--namespace",
            metavar="NAME",
            envvar="DEFAULT_GPU_CLIENTS_NAMESPACE",
            help="The namespace of the GPU clients that are stopped for a change.",
        ),
    ] = "gpu-operator"
    pod_resources: Annotated[
        Path, typer.Option("--pod-resources", metavar="SOCKET", help="The kubelet's socket for devices of pods.")
    ] = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
    with_reboot: Annotated[
        bool,
        typer.Option("--with-reboot", envvar="WITH_REBOOT", help="Reboot the machine where a new MIG mode needs it."),
    ] = False


@with_options
def run(*, fake: FakeMachine = "", following: FollowOptions, access: AccessOptions) -> None:
    """Apply the MIG layout that the label nvidia.com/mig.config of the node names.

    The state is written to the label nvidia.com/mig.config.state.
    """
    from shoal.agent.parts import end_despite, stop_at_signals
    from shoal.wiring.mig_labels import MigFollowing, follow_mig_label

    chosen = MigFollowing(
        access=access.access_for_change(),
        node=host_node(following.node),
        namespace=following.namespace,
        file=following.file,
        pod_resources=following.pod_resources,
        fake=fake,
        may_reboot=following.with_reboot,
    )
    end_despite(follow_mig_label(chosen, stop_at_signals()))
