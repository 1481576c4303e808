"""The options with which helm's users give values: files, `--set`, `--set-string`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from shoal.install.values.reading import ChartValues

_MOST_BYTES = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class ValuesOptions:
    values: Annotated[
        list[Path] | None,
        typer.Option("-f", "--values", metavar="FILE", help="A file of values, as helm has it; repeatable."),
    ] = None
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Values, as driver.enabled=false,a[0].b=c; repeatable."),
    ] = None
    set_string: Annotated[
        list[str] | None,
        typer.Option("--set-string", metavar="NAME=VALUE", help="The same, and every value is a text; repeatable."),
    ] = None

    @property
    def are_given(self) -> bool:
        return bool(self.values or self.set_ or self.set_string)

    def read(self, kept: dict[str, Any] | None = None) -> ChartValues:
        """Prints the warnings. Raises UserError. `kept`: values of the present installation below them."""
        from shoal.api.files import read_whole
        from shoal.install.values.reading import ValuesText, read_values
        from shoal.units.errors import UserError, Where

        texts = []
        for file in self.values or ():
            try:
                texts.append(ValuesText("--values", read_whole(file, _MOST_BYTES).decode(), str(file)))
            except UnicodeDecodeError:
                raise UserError("is not UTF-8 text", where=Where(str(file))) from None
        texts += [ValuesText("--set", text) for text in self.set_ or ()]
        texts += [ValuesText("--set-string", text) for text in self.set_string or ()]
        found = read_values(texts, kept)
        for warning in found.warnings:
            typer.echo(f"shoal: warning: {warning}", err=True)
        _check_rules(found.get("config").get("admission"))
        return found


def _check_rules(admission: Any) -> None:
    """Raises UserError for names of rules that do not exist. The values cannot know the rules."""
    if admission is None:
        return
    from shoal.api.admission_settings import AdmissionSettings
    from shoal.api.decode import convert
    from shoal.policy.admission_rules.modes import modes_of
    from shoal.units.errors import Where

    where = Where(path="config.admission")
    modes_of(convert(admission, AdmissionSettings, where), "shoal-system", where)
