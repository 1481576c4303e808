"""kubectl as a process, for one namespace: what it prints when it succeeds, what it says when it is refused.

Each start costs some 60 ms, so that a test runs it where the command itself is what it proves. Objects are read by
HTTP.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from build.kubectl import kubectl_binary
from build.plain_client import PlainClient, client_of

Obj = dict[str, Any]
PATIENCE_S = 90
"""How long a command may take, on a machine with much else to do."""
_BATCH = 100


class Run(msgspec.Struct, frozen=True):
    """How one command ended."""

    code: int
    out: str
    err: str


class Kubectl:
    """kubectl in one namespace. Called, it must succeed; `refused` must fail; `run` may do either."""

    def __init__(self, kubeconfig: Path, home: Path, namespace: str = "default") -> None:
        self.kubeconfig = kubeconfig
        self.home = home
        self.namespace = namespace

    @property
    def client(self) -> PlainClient:
        """The same user without kubectl, for what the test does not test."""
        return client_of(self.kubeconfig)

    def within(self, namespace: str) -> Kubectl:
        return Kubectl(self.kubeconfig, self.home, namespace)

    def by(self, kubeconfig: Path) -> Kubectl:
        """The same as another user, or on another cluster."""
        return Kubectl(kubeconfig, self.home, self.namespace)

    def environment(self, **more: str) -> dict[str, str]:
        # A home of its own: nobody's kuberc or plugins, and one discovery cache for the whole session.
        # So short a life collects no garbage: it would cost a fifth more.
        named = {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home), "KUBECACHEDIR": str(self.home / "cache")}
        return {**os.environ, "GOGC": "off", **named, **more}

    def command(self, *arguments: str) -> list[str]:
        return [kubectl_binary(), f"--namespace={self.namespace}", *arguments]

    def run(
        self, *arguments: str, given: str | Obj | list[Obj] = "", environment: Mapping[str, str] | None = None
    ) -> Run:
        """`given` goes to standard input: text, or objects as one manifest."""
        done = subprocess.run(
            self.command(*arguments),
            input=given if isinstance(given, str) else manifest(given),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            env=self.environment(**(environment or {})),
            cwd=self.home,
            check=False,
        )
        return Run(done.returncode, done.stdout, done.stderr)

    def __call__(self, *arguments: str, given: str | Obj | list[Obj] = "", **environment: str) -> str:
        done = self.run(*arguments, given=given, environment=environment)
        assert done.code == 0, f"kubectl {' '.join(arguments)}: {done.code}\n{done.out}{done.err}"
        return done.out

    def refused(self, *arguments: str, given: str | Obj | list[Obj] = "") -> str:
        """What it says on standard error, as it exits with 1."""
        done = self.run(*arguments, given=given)
        assert done.code == 1, f"kubectl {' '.join(arguments)}: {done.code}\n{done.out}{done.err}"
        return done.err.strip()

    def get(self, *what: str) -> Obj:
        """What `get -o json` prints, read without a kubectl process where that is possible."""
        found = self.client.read(self.namespace, *what)
        if found is None:
            found = json.loads(self("get", *what, "-o", "json"))
        return found

    def names(self, *what: str) -> list[str]:
        """`pod/a`, `pod/b`, as `get -o name` prints them."""
        return self("get", *what, "-o", "name").split()

    def set_status(self, what: str, status: Obj) -> None:
        """What a controller or kubelet would write."""
        patch = json.dumps({"status": status})
        self("patch", what, "--subresource=status", "--type=merge", "--patch", patch)


def manifest(given: Obj | list[Obj]) -> str:
    """As JSON, which is written in a tenth of the time that YAML takes."""
    return "\n".join(json.dumps(one) for one in ([given] if isinstance(given, dict) else given))


def namespaces(kubectl: Kubectl) -> Iterator[str]:
    """Names of new namespaces without end; a hundred are made by one command."""
    number = count(1)
    while True:
        names = [f"e2e-{next(number)}" for _ in range(_BATCH)]
        made = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
        kubectl("create", "--filename=-", given=made)
        yield from names
