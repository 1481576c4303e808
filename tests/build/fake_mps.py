"""Writes a program with the commands of nvidia-cuda-mps-control, whose daemon and clients are a test's."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from pathlib import Path
from typing import Any

_PROGRAM = """#!{python}
import json, os, pathlib, socket, sys, time

pipe = pathlib.Path(os.environ["CUDA_MPS_PIPE_DIRECTORY"])
commands = pathlib.Path({folder!r}) / "commands"
faults = pathlib.Path({folder!r}) / "faults.json"
address = str(pipe / "control")


def note(text):
    with commands.open("a") as file:
        file.write(text + "\\n")


def fault(name):
    return json.loads(faults.read_text()).get(name) if faults.exists() else None


def serve(listening, state):
    while True:
        connection, _ = listening.accept()
        with connection:
            words = connection.makefile().readline().split()
            if not words:
                continue
            answer = ""
            if words[0] == "set_default_active_thread_percentage":
                state["percent"] = float(words[1])
            elif words[0] == "get_default_active_thread_percentage":
                answer = str(state["percent"])
            elif words[0] == "get_server_list":
                answer = "\\n".join(fault("servers") or [])
            elif words[0] == "get_client_list":
                answer = "\\n".join((fault("clients") or {{}}).get(words[1], []))
            connection.sendall(answer.encode())
        if words[0] == "quit":
            (pipe / "nvidia-cuda-mps-control.pid").unlink()
            os._exit(0)


if sys.argv[1:] == ["-d"]:
    note("start " + os.environ["CUDA_MPS_LOG_DIRECTORY"] + " " + os.environ["CUDA_DEVICE_ORDER"])
    if fault("start"):
        sys.exit(fault("start"))
    if os.path.exists(address):
        os.unlink(address)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(8)
    child = os.fork()
    if child == 0:
        os.setsid()
        serve(listening, {{"percent": 100.0}})
    (pipe / "nvidia-cuda-mps-control.pid").write_text(str(child))
    sys.exit(0)

line = sys.stdin.readline().strip()
note(line)
for refused in fault("refused") or []:
    if line.startswith(refused):
        sys.exit("Command failed")
if fault("silent") and not line.startswith("quit"):
    sys.exit("no answer")
try:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        connection.sendall((line + "\\n").encode())
        sys.stdout.write(connection.makefile().read() + "\\n")
except OSError:
    sys.exit("Cannot find MPS control daemon process")
"""


class FakeMps:
    """`program`: its path. `root`: that of MPS; paths of sockets are short."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.root = folder / "m"
        self.program = folder / "nvidia-cuda-mps-control"
        self.program.write_text(_PROGRAM.format(python=sys.executable, folder=str(folder)))
        self.program.chmod(0o755)
        self.shared_memory = self.root / "shm"
        self.shared_memory.mkdir(parents=True)

    def set(self, **faults: Any) -> None:
        """`start`: the message with which starts fail; `silent`: whether nothing is answered; `refused`: the first
        words of commands that fail; `servers` and `clients`: processes.
        """
        path = self._folder / "faults.json"
        beside = self._folder / "faults.new"
        beside.write_text(json.dumps(faults))
        beside.replace(path)

    def commands(self) -> list[str]:
        """What was sent since the last call."""
        path = self._folder / "commands"
        found = path.read_text().splitlines() if path.exists() else []
        path.write_text("")
        return [line for line in found if line != "get_default_active_thread_percentage"]

    def pid(self, resource: str = "nvidia.com/gpu") -> int | None:
        path = self.root / resource / "pipe" / "nvidia-cuda-mps-control.pid"
        return int(path.read_text()) if path.exists() else None

    def kill(self, resource: str = "nvidia.com/gpu") -> None:
        pid = self.pid(resource)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        _await_end(pid)

    def close(self) -> None:
        for path in self.root.glob("*/*/pipe/nvidia-cuda-mps-control.pid"):
            try:
                os.kill(int(path.read_text()), signal.SIGKILL)
            except ProcessLookupError:
                continue


def _await_end(pid: int) -> None:
    """The kernel ends it at once; only its parent has still to notice."""
    descriptor = os.pidfd_open(pid)
    try:
        select.select([descriptor], [], [], 30)
    finally:
        os.close(descriptor)
