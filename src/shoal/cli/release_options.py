"""The argument and the option that name a release: of `shoal upgrade`, `shoal status` and `shoal uninstall`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer


@dataclass(frozen=True, kw_only=True)
class ReleaseOptions:
    release: Annotated[
        str, typer.Argument(metavar="[RELEASE]", help="The name of the release.", show_default=False)
    ] = ""
    namespace: Annotated[
        str, typer.Option("-n", "--namespace", metavar="NAME", help="The namespace of the release; by default any.")
    ] = ""
