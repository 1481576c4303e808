"""Declares the options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.completion_values import policies

MAX_SEED = 2**63 - 1

Manifests = Annotated[
    list[str],
    typer.Option(
        "-f",
        "--filename",
        metavar="PATH",
        help="A file of manifests, a folder of them, or - for standard input; may be given several times.",
    ),
]
Policy = Annotated[
    str,
    typer.Option(metavar="NAME", help="The policy that ranks the nodes that fit.", autocompletion=policies),
]
SchedulerConfigFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration to decide by, instead of a policy."),
]
Seed = Annotated[int, typer.Option(min=0, max=MAX_SEED, help="The seed of random choices of a policy.")]
