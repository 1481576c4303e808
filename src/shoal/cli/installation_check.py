"""`shoal install check`: what an installation would find, and why pods wait now; it only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from shoal.cli.cluster_access import AccessOptions, announce
from shoal.units.visible_text import visible

if TYPE_CHECKING:
    from shoal.install.preflight.facts import Finding
    from shoal.install.values.reading import ChartValues
    from shoal.views.pod_list import PodLine
    from shoal.wiring.installation.cluster_writer import ClusterWriter

_MOST_SHOWN = 20


def check(access: AccessOptions, namespace: str, values: ChartValues) -> None:
    """Needs the verbs get and list alone."""
    from shoal import __version__
    from shoal.cli.installation_access import installing, show_findings
    from shoal.install.manifest import manifest
    from shoal.install.preflight.checks import adapted, findings
    from shoal.install.preflight.facts import ReleaseFacts
    from shoal.install.preflight.rights import observing_rights
    from shoal.install.release import NAME, Release
    from shoal.wiring.installation.facts_reader import FactsReader

    connected = access.access()
    announce(connected)

    async def work(writer: ClusterWriter, version: str) -> list[Finding]:
        facts = await FactsReader(writer).read(namespace, observing_rights(), version)
        suited = adapted(values, facts)
        # A release that exists is no error here: it is what is observed.
        known = facts.releases[0] if facts.releases else ReleaseFacts(NAME, namespace, "")
        release = Release(known.name, known.namespace, __version__)
        return findings(facts, suited, release, manifest(release, suited))

    show_findings(installing(connected, work))
    show_waiting(access)


def show_waiting(access: AccessOptions) -> None:
    waiting = _waiting(access)
    if not waiting:
        typer.echo("no pod waits for a node")
        return
    typer.echo("1 pod waits:" if len(waiting) == 1 else f"{len(waiting)} pods wait:")
    for line in waiting[:_MOST_SHOWN]:
        typer.echo(f"  {visible(line.pod)}: {visible(line.message or 'no reason found')}")
    if len(waiting) > _MOST_SHOWN:
        typer.echo(f"  and {len(waiting) - _MOST_SHOWN} others: shoal get pods -A")


def _waiting(access: AccessOptions) -> list[PodLine]:
    from shoal.cli.listed_pods import pods_of_source
    from shoal.cli.object_source import source_from

    source = source_from(None, access)
    return [line for line in pods_of_source(source) if line.state == "waits"]
