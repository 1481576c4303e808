"""`shoal crds`: definitions of the kinds of other projects that Shoal reads and writes, for clusters that lack them."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from shoal.cli.formats import FOR_PROGRAMS, checked
from shoal.units.errors import UserError, Where, excerpt

_STORED = ("newest", "oldest")


def crds(
    project: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help="Projects whose definitions are printed, separated by commas. By default kueue."
        ),
    ] = "kueue",
    webhook_service: Annotated[
        str,
        typer.Option(
            metavar="NAMESPACE/NAME",
            help="The Service of Shoal's webhook: definitions of Kueue's kinds lead there from the start.",
        ),
    ] = "",
    stored: Annotated[
        str,
        typer.Option(
            metavar="WHICH",
            help="The version that objects are stored in: newest, or oldest where an older release of the project "
            "is to be installed later.",
        ),
    ] = "newest",
    output: Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help="yaml or json.")] = "yaml",
) -> None:
    """Print definitions of kinds that Shoal works with: shoal crds | kubectl apply -f -."""
    import msgspec

    from shoal.cli.known_names import check_known, named
    from shoal.embedded.apiserver.foreign.converting import led
    from shoal.embedded.apiserver.foreign.definitions import definitions_of, storing_the_oldest, tables

    checked(output, FOR_PROGRAMS)
    check_known(stored, _STORED, "choice", Where(path="--stored"))
    known = {table.project: (file, table) for file, table in tables()}
    chosen = named(project, sorted(known), "--project", "project")
    # Without a service the definitions are led to the webhook by the gatekeeper, once it answers.
    client = _client(webhook_service) if webhook_service else None
    found = [one for name in chosen for one in led(definitions_of(*known[name]), name, client)]
    if stored == "oldest":
        found = [storing_the_oldest(one) for one in found]
    if output == "json":
        whole = {"apiVersion": "v1", "kind": "List", "items": found}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(whole), indent=1).decode() + "\n")
        return
    sys.stdout.write("---\n".join(msgspec.yaml.encode(one).decode() for one in found))


def _client(service: str) -> dict[str, Any]:
    """The webhook itself adds the certificate by which it is trusted when it starts."""
    namespace, _, name = service.partition("/")
    if not namespace or not name or "/" in name:
        fix = "as in shoal-system/shoal-webhook"
        raise UserError(f"{excerpt(service)} is not NAMESPACE/NAME", where=Where(path="--webhook-service"), fix=fix)
    return {"service": {"namespace": namespace, "name": name, "port": 443, "path": "/convert"}}
