"""Draws a progress bar per policy on stderr if stderr is a terminal; pipes and logs get nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

Watch = Callable[[str, int], None]


@contextmanager
def progress(policies: Sequence[str], total: int) -> Iterator[Watch]:
    """Returns a function that is called with a policy and the number of its arrivals so far."""
    if not sys.stderr.isatty():
        yield _is_unwatched
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("pods"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks = {policy: bar.add_task(policy, total=total) for policy in policies}
        yield lambda policy, done: bar.update(tasks[policy], completed=done)


def _is_unwatched(_policy: str, _done: int) -> None:
    pass
