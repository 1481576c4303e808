"""Runs one container as a process, independently of Shoal: it writes the log and, at the end, the exit code to files.

Each container has a supervisor of its own, so that containers run on while Shoal restarts. It is a script without
imports of Shoal, because two hundred of them must start quickly and stay small. The folder that it gets has
`launch.json`; it writes `claim` (its own process id and start time, created exclusively, so that a container never runs
twice), `log` in the format of the Container Runtime Interface, and `exit.json`.

SIGTERM is passed on to the container's main process. SIGUSR1 kills all processes of the container. When the main
process ends, the others are killed, as in a container. `supervisor.py tty COMMAND...` runs a command on the terminal
that is its standard input.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any

_LONGEST_LINE = 16 * 1024
_LOG_BYTES = 10 * 1024 * 1024
_RESERVED_BYTES = 4096
_MARK = "SHOAL_CONTAINER_RUN"


def start_ticks(pid: int) -> str:
    """When a process started, which distinguishes it from later processes of the same id."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[19]


def boot() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


class Log:
    """The lines of one container; rotated once, so that its size is bounded."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._size = os.fstat(self._file).st_size
        self._rest = {"stdout": b"", "stderr": b""}

    def add(self, stream: str, data: bytes) -> None:
        *lines, rest = (self._rest[stream] + data).split(b"\n")
        for line in lines:
            self._write(stream, b"F", line)
        while len(rest) >= _LONGEST_LINE:
            self._write(stream, b"P", rest[:_LONGEST_LINE])
            rest = rest[_LONGEST_LINE:]
        self._rest[stream] = rest

    def end(self) -> None:
        for stream, rest in self._rest.items():
            if rest:
                self._write(stream, b"P", rest)

    def _write(self, stream: str, tag: bytes, line: bytes) -> None:
        now = time.time_ns()
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 10**9))
        text = f"{moment}.{now % 10**9:09d}Z {stream} ".encode() + tag + b" " + line + b"\n"
        try:
            os.write(self._file, text)
        except OSError:
            return  # A full disk must not end the container; the lines are lost.
        self._size += len(text)
        if self._size > _LOG_BYTES:
            self._size = 0
            try:
                os.replace(self._path, self._path + ".1")
                file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            except OSError:
                return  # The container must not end for it; the present file is continued.
            os.close(self._file)
            self._file = file


def marked(run: str) -> list[int]:
    """The processes of a container that can still be recognized by their environment."""
    wanted, found = f"{_MARK}={run}\0".encode(), []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if wanted in file.read() + b"\0":
                        found.append(int(name))
            except OSError:
                continue
    return found


def kill_all(groups: list[str], run: str, main: int = 0) -> None:
    """Kill every process of a container. Processes that fork meanwhile are found in the next round."""
    for _ in range(100):
        pids = set(marked(run))
        for group in groups:
            try:
                with open(f"{group}/cgroup.procs", encoding="utf-8") as file:
                    pids.update(map(int, file.read().split()))
            except OSError:
                continue
        # Zero is a process that this one cannot see; a signal to it would go to the caller's own group.
        pids -= {0, os.getpid()}
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        if main:
            try:
                os.killpg(main, signal.SIGKILL)
            except OSError:
                main = 0
        if not pids:
            return
        time.sleep(0.005)


def _reserve(path: str) -> None:
    """Take the room for the file on the disk, which may be full when it is written."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(" " * _RESERVED_BYTES)


def _write(path: str, value: object) -> None:
    with open(path + ".new", "r+", encoding="utf-8") as file:
        # Blanks behind the value are no part of it.
        file.write(json.dumps(value))
    os.replace(path + ".new", path)


def _child(launch: dict[str, Any], out: int, err: int, fault: int) -> None:
    """Become the container's program. It does not return."""
    step = "start"
    try:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        for group in launch["groups"]:
            step = f"join the cgroup {group}"
            with open(f"{group}/cgroup.procs", "w", encoding="utf-8") as file:
                file.write("0")
        if launch["processes"]:
            step = "limit the number of processes"
            hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
            most = launch["processes"] if hard == resource.RLIM_INFINITY else min(launch["processes"], hard)
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
        step = f"chdir to {launch['folder']!r}"
        os.chdir(launch["folder"])
        step = f"exec: {launch['command'][0]!r}"
        os.execvpe(launch["command"][0], launch["command"], launch["environment"])
    except OSError as error:
        words = f"{step}: {error.strerror}"
        if step.startswith("exec") and error.errno == errno.ENOENT and "/" not in launch["command"][0]:
            words = f'exec: "{launch["command"][0]}": executable file not found in $PATH'
        elif step.startswith("exec"):
            words = f'exec: "{launch["command"][0]}": {(error.strerror or "").lower()}'
        os.write(fault, words.encode())
    finally:
        os._exit(127)


def run(folder: str) -> None:
    with open(f"{folder}/launch.json", encoding="utf-8") as file:
        launch = json.load(file)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    os.set_blocking(wake_read, False)
    signal.set_wakeup_fd(wake_write)
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    try:
        claim = os.open(f"{folder}/claim", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    os.write(claim, f"{os.getpid()} {start_ticks(os.getpid())} {boot()}\n".encode())
    os.close(claim)
    _reserve(f"{folder}/exit.json")
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    fault_read, fault_write = os.pipe()
    started = time.time()
    try:
        main = os.fork()
    except OSError as error:
        now, words = time.time(), f"fork: {error.strerror}"
        _write(f"{folder}/exit.json", {"code": 128, "started_s": now, "finished_s": now, "fault": words})
        return
    if main == 0:
        _child(launch, out_write, err_write, fault_write)
    for one in (out_write, err_write, fault_write):
        os.close(one)
    fault = os.read(fault_read, 4096).decode(errors="replace")
    os.close(fault_read)
    log = Log(f"{folder}/log")
    code = _follow(main, {out_read: "stdout", err_read: "stderr"}, wake_read, log, launch)
    for one, name in ((out_read, "stdout"), (err_read, "stderr")):
        os.set_blocking(one, False)
        _drain(one, name, log)
    log.end()
    _write(f"{folder}/exit.json", {"code": code, "started_s": started, "finished_s": time.time(), "fault": fault})


def _drain(source: int, name: str, log: Log) -> None:
    try:
        while data := os.read(source, 65536):
            log.add(name, data)
    except OSError:
        return


def _follow(main: int, pipes: dict[int, str], wake: int, log: Log, launch: dict[str, Any]) -> int:
    """Write the log until the main process has ended and the others are killed; returns its exit code."""
    open_pipes = dict(pipes)
    while True:
        for source in select.select([wake, *open_pipes], [], [])[0]:
            if source == wake:
                numbers = os.read(wake, 4096)
                if signal.SIGTERM in numbers:
                    os.kill(main, signal.SIGTERM)
                if signal.SIGUSR1 in numbers:
                    kill_all(launch["groups"], launch["run"], main)
                pid, status = os.waitpid(main, os.WNOHANG)
                if pid == main:
                    kill_all(launch["groups"], launch["run"], main)
                    code = os.waitstatus_to_exitcode(status)
                    return code if code >= 0 else 128 - code
            elif data := os.read(source, 65536):
                log.add(open_pipes[source], data)
            else:
                del open_pipes[source]


def tty(command: list[str]) -> None:
    os.login_tty(0)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f'exec: "{command[0]}": {(error.strerror or "").lower()}\n')
        os._exit(127 if error.errno == errno.ENOENT else 126)


if __name__ == "__main__":
    if sys.argv[1] == "tty":
        tty(sys.argv[2:])
    else:
        run(sys.argv[1])
