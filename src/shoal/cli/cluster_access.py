"""Chooses the cluster of a command and runs the command on it: connect, work, close, one line if it fails.

Guarantees: every command can name its cluster in the same words, on stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from shoal.cli.completion_values import contexts
from shoal.cli.exit_codes import FAILED

if TYPE_CHECKING:
    from shoal.client.http.access import Access
    from shoal.client.port import Api

T = TypeVar("T")
_PANEL = "Options of the cluster"
_PATIENCE_S = 20.0
"""The time limit of one answer, for which a user waits."""
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="The kubeconfig file. By default KUBECONFIG, then ~/.kube/config, then that of a running shoal up.",
        rich_help_panel=_PANEL,
    ),
]
KubeContext = Annotated[
    str,
    typer.Option(
        "--context",
        metavar="NAME",
        help="The context of the kubeconfig; by default the current one.",
        autocompletion=contexts,
        rich_help_panel=_PANEL,
    ),
]


@dataclass(frozen=True, kw_only=True)
class AccessOptions:
    """The options of every command that reads a live cluster."""

    kubeconfig: Kubeconfig = None
    context: KubeContext = ""
    cluster: Annotated[
        str, typer.Option("--cluster", rich_help_panel=_PANEL, metavar="NAME", help="The cluster of the kubeconfig.")
    ] = ""
    user: Annotated[
        str, typer.Option("--user", rich_help_panel=_PANEL, metavar="NAME", help="The user of the kubeconfig.")
    ] = ""
    as_user: Annotated[
        str, typer.Option("--as", rich_help_panel=_PANEL, metavar="USER", help="Impersonate this user.")
    ] = ""
    as_group: Annotated[
        list[str] | None,
        typer.Option("--as-group", rich_help_panel=_PANEL, metavar="GROUP", help="Impersonate this group; repeatable."),
    ] = None
    request_timeout: Annotated[
        str,
        typer.Option(
            "--request-timeout",
            rich_help_panel=_PANEL,
            metavar="TIME",
            help="The time limit of a request: 5s, 2m. 0: the default.",
        ),
    ] = "0"

    def access(self) -> Access:
        """Raises UserError for what the kubeconfig does not have, and for options that exclude each other."""
        from msgspec import structs

        from shoal.cli.chosen_cluster import located
        from shoal.client.http.kubeconfig import KubeconfigChoice

        timeout_s = _seconds(self.request_timeout)
        headers = _impersonation(self.as_user, self.as_group or ())
        access = located(self.kubeconfig, KubeconfigChoice(self.context, self.cluster, self.user))
        kept = tuple(one for one in access.headers if not headers or not one[0].startswith("Impersonate-"))
        return structs.replace(access, headers=(*kept, *headers), timeout_s=timeout_s)

    def access_for_change(self, *, is_child: bool = False) -> Access:
        """The same for a command that changes the cluster; names the cluster on stderr, unless a parent process did."""
        access = self.access()
        if not is_child:
            announce(access, changes=True)
        return access


def named(access: Access) -> str:
    """The cluster in words: `shoal (https://127.0.0.1:6443, from KUBECONFIG)`."""
    origin = f", from {access.origin}" if access.origin else ""
    return f"{access.name or 'cluster'} ({access.server}{origin})"


def announce(access: Access, *, changes: bool = False) -> None:
    """A line on stderr that names the cluster. `changes`: the command changes the cluster, so scripts get it too."""
    if changes or sys.stderr.isatty():
        typer.echo(f"cluster: {named(access)}", err=True)


def speak(access: Access, work: Callable[[Api], Awaitable[T]]) -> T:
    """Returns the result of `work`. A refusal of the server, or no server, is one line and exit code 1."""
    import random

    from shoal.client.http.api import KubeApi
    from shoal.client.http.settings import KubeSettings

    async def spoken() -> T:
        api = KubeApi(access, random.Random(), KubeSettings(timeout_s=_PATIENCE_S))
        try:
            return await work(api)
        finally:
            await api.close()

    return ended(access, spoken)


def ended(access: Access, work: Callable[[], Awaitable[T]]) -> T:
    import asyncio

    async def awaited() -> T:
        return await work()

    with in_one_line(access):
        return asyncio.run(awaited())


@contextmanager
def in_one_line(access: Access) -> Iterator[None]:
    """Turns a refusal of the server, or a missing server, into one line and exit code 1."""
    from shoal.cli.chosen_cluster import silence_words
    from shoal.client.refusals import NO_ANSWER, BusyError, RefusedError

    try:
        yield
    except (BusyError, RefusedError) as error:
        is_silent = isinstance(error, BusyError) and error.reason == NO_ANSWER
        words = silence_words(access, str(error)) if is_silent else str(error)
        typer.echo(f"shoal: {access.where}: {words}", err=True)
        raise typer.Exit(FAILED) from None


def _impersonation(user: str, groups: Sequence[str]) -> tuple[tuple[str, str], ...]:
    from shoal.client.http.access import is_header_text
    from shoal.units.errors import UserError, Where

    if groups and not user:
        raise UserError("is given without --as", where=Where(path="--as-group"), fix="name a user with --as")
    for option, value in (("--as", user), *(("--as-group", group) for group in groups)):
        if not is_header_text(value):
            raise UserError("holds a line break or control character", where=Where(path=option))
    return (("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)) if user else ()


def _seconds(text: str) -> float:
    from shoal.units.durations import DurationError, nanoseconds
    from shoal.units.errors import UserError, Where, excerpt

    try:
        # As with kubectl, a number without a unit means seconds.
        found = nanoseconds(f"{text}s" if text.isascii() and text.isdigit() else text)
    except DurationError:
        found = -1
    if found < 0:
        where = Where(path="--request-timeout")
        raise UserError(f"{excerpt(text)} is not a duration", where=where, fix="as in 5s, 2m or 1h; 0 for the default")
    return found / 10**9
