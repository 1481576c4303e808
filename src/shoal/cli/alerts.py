"""Implements `shoal alerts`: prints alerts about GPUs and queues, for the Prometheus operator or for Prometheus."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from shoal.cli.option_groups import with_options


class AlertFormat(StrEnum):
    OBJECT = "object"
    RULES = "rules"


@dataclass(frozen=True, kw_only=True)
class AlertOptions:
    output: Annotated[
        AlertFormat,
        typer.Option(
            "--output",
            "-o",
            metavar="FORMAT",
            help="object: a PrometheusRule for kubectl apply. rules: a rule file of Prometheus.",
        ),
    ] = AlertFormat.OBJECT
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="The namespace of the object.")
    ] = "monitoring"
    name: Annotated[str, typer.Option(metavar="NAME", help="The name of the object.")] = "shoal-alerts"
    labels: Annotated[
        str,
        typer.Option(metavar="LABELS", help="Labels of the object, by which a Prometheus selects rules: release=prom."),
    ] = ""


@with_options
def alerts(options: AlertOptions) -> None:
    """Print alerts about GPUs and queues: shoal alerts | kubectl apply -f -."""
    import sys

    import msgspec

    from shoal.policy.alert_rules import prometheus_rule, rule_groups

    if options.output is AlertFormat.RULES:
        document = {"groups": rule_groups()}
    else:
        document = prometheus_rule(options.name, options.namespace, _labels(options.labels))
    sys.stdout.write(msgspec.yaml.encode(document).decode())


def _labels(text: str) -> dict[str, str]:
    """Raises UserError for a text that is no list of labels."""
    from shoal.units.errors import UserError, Where, excerpt

    found: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not key.strip() or not equals:
            raise UserError(
                f"{excerpt(part)} is no label", where=Where(path="--labels"), fix="write KEY=VALUE, as in release=prom"
            )
        found[key.strip()] = value.strip()
    return found
