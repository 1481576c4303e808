"""Starts a server, or a node, that outlives the command: a child process in its own session, which reports readiness.

The child holds one end of a pipe. It writes a line when it is ready; when it ends instead, the system closes the pipe,
so there is nothing to poll and no time to guess. What it had to say is the last line of its log.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from shoal.cli.progress import long_work, step
from shoal.units.errors import UserError

if TYPE_CHECKING:
    from shoal.embedded.apiserver.settings import Settings

_COMPLAINT, _PRIVATE_FILE = "shoal: ", 0o600


class Detached(NamedTuple):
    pid: int
    lines: list[str]
    """What it has logged until it was ready."""


def start_detached(folder: Path, settings: Settings, more: Sequence[str] = (), says: tuple[str, ...] = ()) -> Path:
    """Returns the kubeconfig once the server is ready; raises the error that the server reported.

    `more` are arguments beside those that the settings say. Lines of the log that begin with one of `says` are
    repeated.
    """
    from shoal.embedded.apiserver.private_files import make_private_folder
    from shoal.embedded.apiserver.security.state_folder import LOG, claim

    with claim(folder):
        # Whatever is wrong with the folder is said here, before anything is written into another server's log.
        make_private_folder(folder)
    step(f"starting Kubernetes {settings.kube_version} in {folder}")
    command = ["up", *_arguments(folder, settings), *more]
    found = run_detached(command, folder / LOG, "the API server and the nodes")
    for line in found.lines:
        if line.startswith(says):
            step(line)
    return settings.kubeconfig


def run_detached(command: Sequence[str], log_file: Path, awaited: str) -> Detached:
    """Start this command of Shoal, which has the option `--notify-fd`, and return once it is ready. Raises the error
    that it reported.
    """
    log = os.open(log_file, os.O_RDWR | os.O_CREAT | os.O_APPEND, _PRIVATE_FILE)
    start = os.fstat(log).st_size
    reader, writer = os.pipe()
    try:
        child = subprocess.Popen(  # noqa: S603 - the same interpreter with arguments made here
            [sys.executable, "-m", "shoal", *command, "--notify-fd", str(writer)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(writer,),
            start_new_session=True,
            cwd="/",
        )
        os.close(writer)
        with long_work(f"waiting for {awaited}; the log is {log_file}"):
            is_ready = os.read(reader, 64).startswith(b"ready")
        if is_ready:
            return Detached(child.pid, _lines(log, start))
        child.wait()
        raise UserError(_last_words(log, start) or f"it ended with code {child.returncode}")
    finally:
        os.close(reader)
        os.close(log)


def _arguments(folder: Path, settings: Settings) -> list[str]:
    arguments = ["--state", str(folder), "--port", str(settings.port)]
    arguments += ["--host", settings.host] if settings.is_host_chosen else []
    arguments += ["--kube-version", settings.kube_version, "--authorization", settings.authorization]
    arguments += ["--kubeconfig", str(settings.kubeconfig)]
    arguments += ["--history-events", str(settings.history_events), "--history-seconds", str(settings.history_s)]
    arguments += ["--accept-data-loss"] if settings.accepts_loss else []
    return arguments if settings.state_dir is not None else [*arguments, "--memory"]


def _last_words(log: int, start: int) -> str:
    lines = _lines(log, start)
    return lines[-1].removeprefix(_COMPLAINT) if lines else ""


def _lines(log: int, start: int) -> list[str]:
    size = os.fstat(log).st_size
    return os.pread(log, size - start, start).decode(errors="replace").splitlines()
