"""Reports the progress of long work on stderr: a line per step, or a bar per policy.

Guarantees: work of less than two seconds prints nothing. Bars are for terminals; steps are for logs too.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

_LONG_S = 2.0
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


def step(words: str) -> None:
    """A line for a step that has begun."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


def terminal_step(words: str) -> None:
    """A line for people who wait. In a log it would say nothing about the result of a command on files."""
    if sys.stderr.isatty():
        step(words)


@contextmanager
def long_work(words: str, say: Callable[[str], None] = step, long_s: float = _LONG_S) -> Iterator[None]:
    """Says the words as a step once the work has lasted two seconds."""
    timer = threading.Timer(long_s, say, [f"{words} ..."])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
