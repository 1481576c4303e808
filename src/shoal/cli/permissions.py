"""Implements `shoal permissions`: prints the roles that `shoal run` needs, as objects for `kubectl apply`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from shoal.cli.formats import FOR_PROGRAMS, checked


def permissions(
    controllers: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help="Parts of shoal run, separated by commas. By default those that it runs by default."
        ),
    ] = "",
    namespace: Annotated[
        str,
        typer.Option("-n", "--namespace", metavar="NAME", help="The namespace of Shoal's service account and secrets."),
    ] = "shoal-system",
    user: Annotated[
        str, typer.Option(metavar="NAME", help="For this user, instead of a service account of Shoal's own.")
    ] = "",
    cloud: Annotated[
        str, typer.Option(metavar="NAME", help="The cloud of node-scaling: cluster-api, external-grpc or aws.")
    ] = "",
    output: Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help="yaml or json.")] = "yaml",
) -> None:
    """Print the account and the roles that shoal run needs: shoal permissions | kubectl apply -f -."""
    import msgspec

    from shoal.cli.known_names import check_known, named
    from shoal.data.permissions import BY_DEFAULT, ELECTION_NAMESPACE, NAMED, NODE_SCALING, PARTS, WITH_CLOUD
    from shoal.install.objects.permissions import RoleSubjects, manifests
    from shoal.units.errors import UserError, Where

    checked(output, FOR_PROGRAMS)
    parts = named(controllers, tuple(PARTS)) or BY_DEFAULT
    if cloud and NODE_SCALING not in parts:
        raise UserError(
            "only node-scaling uses a cloud", where=Where(path="--cloud"), fix="name the part by --controllers"
        )
    if cloud:
        check_known(cloud, tuple(WITH_CLOUD), "cloud", Where(path="--cloud"))
    # The Lease of these parts as `shoal run` chooses it.
    lease = f"shoal-{parts[0]}" if set(parts) <= set(NAMED) else "shoal"
    objects = manifests(parts, RoleSubjects(namespace, user, election=(ELECTION_NAMESPACE, lease), cloud=cloud))
    if output == "json":
        whole = {"apiVersion": "v1", "kind": "List", "items": objects}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(whole), indent=1).decode() + "\n")
        return
    sys.stdout.write("---\n".join(msgspec.yaml.encode(one).decode() for one in objects))
