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
