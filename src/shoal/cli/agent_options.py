"""Options that several commands of `shoal agent` have."""

from __future__ import annotations

from typing import Annotated

import typer

FakeMachine = Annotated[
    str,
    typer.Option(
        "--fake",
        metavar="MACHINE",
        help="Simulate this machine instead of reading the driver, such as dgx-h100.",
    ),
]
MigStrategy = Annotated[
    str, typer.Option("--mig-strategy", metavar="STRATEGY", envvar="MIG_STRATEGY", help="none, single or mixed.")
]
DefaultConfig = Annotated[
    str,
    typer.Option(
        "--default-config", metavar="NAME", envvar="DEFAULT_CONFIG", help="The file of a Node without the label."
    ),
]
HostNode = Annotated[
    str, typer.Option("--node", metavar="NAME", envvar="NODE_NAME", help="The node; by default the host's name.")
]


def host_node(given: str) -> str:
    """The name of this machine's Node: as it is given, or the host's name."""
    import socket

    return given or socket.gethostname().lower()
