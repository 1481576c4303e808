"""Implements `shoal node token`, `tokens` and `revoke`, which run on the server's machine, beside its keys."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_folder import StateFolder, cluster_folder
from shoal.cli.formats import FOR_PROGRAMS, TEXTS, TextOutput, checked
from shoal.units.errors import UserError, Where, excerpt

if TYPE_CHECKING:
    from shoal.embedded.apiserver.security.join_tokens import JoinTokens

_UNSPECIFIED = ("0.0.0.0", "::")  # noqa: S104 - compared, not listened on
_LIFE = "1h"


def token(
    *,
    ttl: Annotated[
        str, typer.Option("--ttl", metavar="TIME", help="How long the token is valid: 15m, 1h; at most 168h.")
    ] = _LIFE,
    state: StateFolder = None,
    output: TextOutput = TEXTS[0],
) -> None:
    """Print the command with which another machine joins the cluster of shoal up.

    The command has a token, which only the user who started the cluster can create.
    """
    checked(output, TEXTS)
    life_s = _life_s(ttl)
    folder = cluster_folder(state)
    address = _address(folder)

    from shoal.client.kubelet.node_joining import authority_hash

    digest = authority_hash((_keys(folder) / "ca.crt").read_bytes())
    now_s = time.time()
    created = _tokens(folder).create(now_s, life_s)
    expires = _text(now_s + life_s)
    if output in FOR_PROGRAMS:
        from shoal.cli.formats import write

        write({"server": address, "token": created, "caHash": digest, "expires": expires}, output)
        return
    words = f"the token is valid until {expires}; run this on the machine that joins, as a user who may run pods there:"
    typer.echo(words, err=True)
    typer.echo(f"shoal join {address} --token {created} --ca-hash {digest}")


def tokens(*, state: StateFolder = None, output: TextOutput = TEXTS[0]) -> None:
    """List the join tokens that have not expired.

    Only their names are known: the file has hashes.
    """
    checked(output, TEXTS)
    found = _tokens(cluster_folder(state)).valid(time.time())
    rows = [{"name": one.name, "created": _text(one.created_s), "expires": _text(one.expires_s)} for one in found]
    if output in FOR_PROGRAMS:
        from shoal.cli.formats import write

        write({"items": rows}, output)
        return
    if not rows:
        typer.echo("no valid join tokens", err=True)
        return
    typer.echo(f"{'TOKEN':<8} {'CREATED':<21} EXPIRES")
    for row in rows:
        typer.echo(f"{row['name']:<8} {row['created']:<21} {row['expires']}")


def revoke(
    *,
    token: Annotated[
        str, typer.Argument(metavar="TOKEN", help="The name of a token, as listed, or the token.", show_default=False)
    ],
    state: StateFolder = None,
) -> None:
    """Revoke a join token before it expires.

    Machines that joined with it stay; `shoal node remove` removes them.
    """
    name = token.partition(".")[0]
    if not _tokens(cluster_folder(state)).revoke(name, time.time()):
        raise UserError(f"there is no valid join token {excerpt(name)}", fix="`shoal node tokens` lists them")
    typer.echo(f"the join token {name} is revoked")


def _address(folder: Path) -> str:
    """HOST:PORT of the running server. Raises UserError if machines cannot join it."""
    from urllib.parse import urlsplit

    from shoal.embedded.apiserver.security.state_folder import check_form, running

    check_form(folder)
    found = running(folder)
    where = Where(str(folder))
    if found is None:
        raise UserError("no cluster runs here", where=where, fix="start it with `shoal up --host ADDRESS`")
    if found.joining_fault:
        what, _, fix = found.joining_fault.partition("; ")
        raise UserError(f"no machine can join this cluster: {what}", where=where, fix=f"end it and {fix}")
    parts = urlsplit(found.url)
    if parts.hostname in _UNSPECIFIED:
        fix = "end it and start it with --host and the one address that the other machines reach"
        raise UserError(f"{parts.hostname} is no address that a machine can connect to", where=where, fix=fix)
    return parts.netloc


def _keys(folder: Path) -> Path:
    return folder / "keys"


def _tokens(folder: Path) -> JoinTokens:
    from shoal.embedded.apiserver.security.join_tokens import JoinTokens

    return JoinTokens(_keys(folder))


def _life_s(text: str) -> float:
    from shoal.embedded.apiserver.security.join_tokens import LONGEST_S
    from shoal.units.durations import DurationError, nanoseconds

    try:
        found = nanoseconds(text) / 10**9
    except DurationError:
        found = 0.0
    if not 0 < found <= LONGEST_S:
        fix = f"write a time as in 15m or 1h, at most {LONGEST_S // 3600}h"
        raise UserError(
            f"{excerpt(text)} is not a time for which a token can be valid", where=Where(path="--ttl"), fix=fix
        )
    return found


def _text(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
