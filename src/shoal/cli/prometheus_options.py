"""The options that name a Prometheus server from which samples of GPUs are read."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.store.history.history import ReaderOf
    from shoal.store.history.prometheus_server import PrometheusAddress


@dataclass(frozen=True, kw_only=True)
class PrometheusOptions:
    prometheus: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Read how GPUs were used from this Prometheus-compatible server, which scrapes the DCGM exporters.",
        ),
    ] = ""
    prometheus_token: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --prometheus: a file with a bearer token for it.")
    ] = None
    prometheus_ca: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --prometheus: the certificates to trust, as PEM.")
    ] = None
    prometheus_match: Annotated[
        str,
        typer.Option(
            metavar="MATCHERS", help='With --prometheus: what all series must have, as in job="dcgm-exporter".'
        ),
    ] = ""

    def address(self) -> PrometheusAddress | None:
        """Raises UserError for what cannot be used."""
        more = {
            "--prometheus-token": self.prometheus_token,
            "--prometheus-ca": self.prometheus_ca,
            "--prometheus-match": self.prometheus_match or None,
        }
        given = next((name for name, value in more.items() if value is not None), "")
        if not self.prometheus:
            if given:
                raise UserError("is for a server", where=Where(path=given), fix="name it with --prometheus URL")
            return None
        from shoal.store.history.prometheus_server import PrometheusAddress

        found = PrometheusAddress(
            self.prometheus.rstrip("/"),
            None if self.prometheus_token is None else self.prometheus_token.expanduser().absolute(),
            None if self.prometheus_ca is None else self.prometheus_ca.expanduser().absolute(),
            self.prometheus_match,
        )
        found.check()
        return found

    def arguments(self) -> list[str]:
        """The same options for another command."""
        given = {
            "--prometheus": self.prometheus or None,
            "--prometheus-token": self.prometheus_token,
            "--prometheus-ca": self.prometheus_ca,
            "--prometheus-match": self.prometheus_match or None,
        }
        return [word for name, value in given.items() if value is not None for word in (name, str(value))]

    def reader(self) -> ReaderOf | None:
        """None: samples are those that the history recorded."""
        return reader_of(self.address())


def reader_of(address: PrometheusAddress | None) -> ReaderOf | None:
    if address is None:
        return None
    from shoal.store.history.prometheus_samples import prometheus_reader

    return prometheus_reader(address)


def plain_options(options: PrometheusOptions) -> PrometheusOptions:
    """These options alone, of a command that has others beside them."""
    return PrometheusOptions(**{one.name: getattr(options, one.name) for one in fields(PrometheusOptions)})
