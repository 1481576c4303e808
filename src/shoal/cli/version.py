"""Implements `shoal version`: the versions of this program and of the cluster that it would use."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.formats import TEXTS, TextOutput, checked
from shoal.cli.option_groups import with_options
from shoal.install.preflight.supported_versions import NEWEST_KUBERNETES, OLDEST_KUBERNETES, unsupported


@with_options
def version(
    *,
    client: Annotated[
        bool, typer.Option("--client", help="Only the version of Shoal; no cluster is contacted.")
    ] = False,
    output: TextOutput = TEXTS[0],
    access: AccessOptions,
) -> None:
    """Print the versions of Shoal and of the cluster."""
    checked(output, TEXTS)
    from shoal import __version__
    from shoal.units.commit import commit

    built_from = commit()
    own = {
        "version": __version__,
        "commit": built_from,
        "python": platform.python_version(),
        "kubernetes": f"{OLDEST_KUBERNETES} to {NEWEST_KUBERNETES}",
    }
    if output != TEXTS[0]:
        from shoal.cli.formats import write

        write({"client": own} if client else {"client": own, "server": _server(access)}, output)
        return
    typer.echo(f"Client Version: {__version__}")
    typer.echo(f"Commit: {built_from or 'unknown'}")
    typer.echo(f"Supported Kubernetes Versions: {own['kubernetes']}")
    if not client:
        server = _server(access)
        typer.echo(f"Server Version: {server['version']}\nCluster: {server['cluster']}")
        complaint = unsupported(server["version"])
        if complaint:
            typer.echo(f"shoal: warning: {complaint}", err=True)


def _server(options: AccessOptions) -> dict[str, str]:
    """As the server reports it. A cluster that does not answer is an error, as with kubectl."""
    import msgspec

    from shoal.cli.cluster_access import ended, named
    from shoal.client.http.connection import Connection
    from shoal.client.http.settings import KubeSettings

    access = options.access()

    async def work() -> bytes:
        connection = Connection(access, KubeSettings(timeout_s=_PATIENCE_S))
        try:
            return await connection.ask("GET", "/version")
        finally:
            await connection.close()

    found = msgspec.json.decode(ended(access, work), type=dict[str, str])
    return {"version": found.get("gitVersion", "unknown"), "cluster": named(access)}


_PATIENCE_S = 5.0
