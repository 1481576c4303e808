"""A cluster with simulated nodes as its users have it, and what tests of it say again and again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from itertools import count
from pathlib import Path
from time import monotonic, sleep  # noqa: TID251 - the cluster is another process
from typing import TypeVar

import pytest

from build.cluster_server import ServerProcess
from build.kubectl_runs import PATIENCE_S, Kubectl, Obj, Run
from shoal.cli.main import main

T = TypeVar("T")
_PAUSE_S = 0.04
WITHIN = f"--timeout={PATIENCE_S - 5}s"
"""How long kubectl waits: less than a test waits for kubectl, so that a failure has its words."""


@contextmanager
def living(folder: Path, nodes: str, *arguments: str) -> Iterator[ServerProcess]:
    """A server with these nodes and all controllers; what it logs by the way must not be a traceback."""
    folder.mkdir(parents=True, exist_ok=True)
    server = ServerProcess(folder, "--nodes", nodes, *arguments, is_bare=False)
    try:
        yield server
    finally:
        code = server.stop()
    assert (code, "Traceback" in server.log.read_text()) == (0, False), server.log.read_text()


def namespaces_in(kubectl: Kubectl) -> Iterator[Kubectl]:
    """kubectl in one new namespace after the other, each with its service account."""
    for number in count(1):
        inside = kubectl.within(f"life-{number}")
        inside.client.create_namespace(inside.namespace)
        until(lambda: inside.client.has_account(inside.namespace))  # noqa: B023 - called before the next one is made
        yield inside


def shoal(*arguments: str, kubeconfig: Path | None = None) -> Run:
    """One `shoal` command to its end. It runs in this process: another one would take a second to start."""
    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as environment, redirect_stdout(out), redirect_stderr(err):
        if kubeconfig is not None:
            environment.setenv("KUBECONFIG", str(kubeconfig))
        code = main(arguments)
    return Run(code, out.getvalue(), err.getvalue())


def shoal_apart(*arguments: str) -> Run:
    """The same in a process of its own, for commands that otherwise run until they are stopped."""
    done = subprocess.run(
        [sys.executable, "-m", "shoal", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr)


def until(look: Callable[[], T], *, within_s: float = PATIENCE_S) -> T:
    """What `look` says as soon as it says anything true; for what kubectl cannot wait for."""
    ends = monotonic() + within_s
    while not (seen := look()):
        assert monotonic() < ends, f"still {seen!r} after {within_s} s"
        sleep(_PAUSE_S)
    return seen


def rolled_out(kubectl: Kubectl, what: str) -> str:
    """The last line that `rollout status` says."""
    return kubectl("rollout", "status", what, WITHIN).splitlines()[-1]


def tell(kubectl: Kubectl, what: str, *says: str) -> None:
    """Pods that run heed what they are told, such as "run-for=1ms": nobody has to look while something lasts."""
    kubectl("annotate", *what.split(), "--overwrite", *(f"shoal.dev/{one}" for one in says))


def wait(kubectl: Kubectl, what: str, state: str, *more: str) -> None:
    kubectl("wait", *what.split(), f"--for={state}", WITHIN, *more)


def ended(kubectl: Kubectl, name: str) -> bool:
    """Whether the Job is complete; pods of it that run are told to end."""
    tell(kubectl, f"pod --selector=job-name={name}", "run-for=1ms")
    return "Complete" in conditions(kubectl.get("job", name))


def pods(kubectl: Kubectl, selector: str = "") -> list[Obj]:
    """Those that nobody has deleted, by name."""
    chosen = ("--selector", selector) if selector else ()
    found: list[Obj] = kubectl.get("pods", *chosen)["items"]
    return sorted(
        (pod for pod in found if "deletionTimestamp" not in pod["metadata"]),
        key=lambda pod: str(pod["metadata"]["name"]),
    )


def uids(found: list[Obj]) -> dict[str, str]:
    return {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in found}


def nodes_of(found: list[Obj]) -> set[str]:
    return {pod["spec"].get("nodeName", "") for pod in found}


def restarts(found: list[Obj]) -> int:
    return sum(one["restartCount"] for pod in found for one in pod["status"].get("containerStatuses", ()))


def indexes(found: list[Obj]) -> list[int]:
    """Of an Indexed Job's pods."""
    key = "batch.kubernetes.io/job-completion-index"
    return sorted(int(pod["metadata"]["annotations"][key]) for pod in found)


def events(kubectl: Kubectl, name: str) -> dict[str, str]:
    """Of one object: the message by reason."""
    found = kubectl.get("events", f"--field-selector=involvedObject.name={name}")["items"]
    return {one["reason"]: one["message"] for one in found}


def conditions(obj: Obj) -> dict[str, Obj]:
    return {one["type"]: one for one in obj["status"].get("conditions", ())}


def job(name: str, pod_annotations: dict[str, str], gpus: int = 0, **spec: object) -> Obj:
    container: Obj = {"name": "main", "image": "trainer:1"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    annotations = {f"shoal.dev/{key}": value for key, value in pod_annotations.items()}
    template = {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def pod(name: str, annotations: dict[str, str] | None = None, gpus: int = 0, **spec: object) -> Obj:
    container: Obj = {"name": "main", "image": "cuda:13"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    said = {f"shoal.dev/{key}": value for key, value in (annotations or {}).items()}
    metadata = {"name": name, "annotations": said}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def patch(obj: Obj) -> str:
    return json.dumps(obj)
