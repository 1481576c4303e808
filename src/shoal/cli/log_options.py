"""Declares the options of logs, and sets logging up for commands that run until they are ended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.completion_values import one_of
from shoal.cli.known_names import check_known
from shoal.units.errors import Where

_FORMATS = ("text", "json")
_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, kw_only=True)
class LoggingOptions:
    log_format: Annotated[
        str,
        typer.Option(
            "--log-format",
            metavar="FORMAT",
            help="text, or json: one object on each line.",
            autocompletion=one_of(_FORMATS),
        ),
    ] = _FORMATS[0]
    log_level: Annotated[
        str,
        typer.Option(
            "--log-level",
            metavar="LEVEL",
            help="The lowest level that is logged: debug, info, warning or error.",
            autocompletion=one_of(_LEVELS),
        ),
    ] = "warning"

    def check(self) -> None:
        check_known(self.log_format, _FORMATS, "format", Where(path="--log-format"))
        check_known(self.log_level, _LEVELS, "level", Where(path="--log-level"))

    def set_up(self, file: Path | None = None) -> None:
        """Logs to standard error, or to the file."""
        import logging

        from shoal.telemetry.log_format import formatter

        self.check()
        handler = logging.StreamHandler() if file is None else logging.FileHandler(file)
        handler.setFormatter(formatter(self.log_format))
        logging.basicConfig(handlers=[handler], level=self.log_level.upper())

    def arguments(self) -> list[str]:
        """For a process that logs alike."""
        return ["--log-format", self.log_format, "--log-level", self.log_level]
