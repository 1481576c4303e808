"""`shoal up --this-machine`: kubectl runs real processes on this machine, and they survive the death of Shoal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from build.cluster_server import ServerProcess
from build.forwarded_ports import forwarded
from build.kubectl_runs import Kubectl
from build.pod_usage import top_of

pytestmark = [pytest.mark.external("kubectl"), pytest.mark.slow]
Obj = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("this-machine")


class Machine:
    """The server of the module, which tests may kill and start again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = self._start()
        home = folder / "home"
        home.mkdir()
        self.kubectl = Kubectl(self.server.kubeconfig, home)

    def kill_and_start(self) -> None:
        self.server.stop(signal.SIGKILL)
        self.server = self._start()

    def _start(self) -> ServerProcess:
        return ServerProcess(self.folder, "--this-machine", "--no-foreign-kinds", is_bare=False)


@pytest.fixture(scope="module")
def machine(folder: Path) -> Iterator[Machine]:
    found = Machine(folder)
    found.kubectl("label", "namespace", "default", "shoal.dev/process-pods=allowed")
    yield found
    found.kubectl("delete", "pods", "--all", "--wait")
    found.server.stop()


def pod(name: str, *command: str, **spec: Any) -> Obj:
    main = {"name": "main", "image": "none", "command": list(command), **spec.pop("main", {})}
    spec = {"runtimeClassName": "process", "restartPolicy": "Never", "containers": [main], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def created(machine: Machine, obj: Obj) -> str:
    machine.kubectl.client.ask("POST", f"/api/v1/namespaces/{obj['metadata']['namespace']}/pods", obj)
    return f"pod/{obj['metadata']['name']}"


def until(machine: Machine, name: str, path: str, value: str) -> None:
    machine.kubectl("wait", name, f"--for=jsonpath={{{path}}}={value}", "--timeout=60s")


def test_a_pod_runs_prints_and_ends(machine: Machine) -> None:
    env = [{"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]

    name = created(machine, pod("hello", "sh", "-c", 'echo "hello $WHO"; exit 3', main={"env": env}))
    until(machine, name, ".status.phase", "Failed")

    assert machine.kubectl("logs", name) == "hello hello\n"
    assert (
        machine.kubectl("get", name, "-o", "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}") == "3"
    )


def test_a_pipe_in_place_of_the_termination_message_does_not_stop_the_server(machine: Machine) -> None:
    name = created(machine, pod("pipe", "sh", "-c", 'mkfifo "$SHOAL_TERMINATION_LOG"; exit 4'))
    until(machine, name, ".status.phase", "Failed")
    message = "jsonpath={.status.containerStatuses[0].state.terminated.message}"
    assert machine.kubectl("get", name, "-o", message) == ""


def test_exec_runs_a_command_beside_the_process(machine: Machine) -> None:
    name = created(machine, pod("beside", "sleep", "1000"))
    until(machine, name, ".status.phase", "Running")

    assert machine.kubectl("exec", name, "--", "sh", "-c", "echo $HOSTNAME") == "beside\n"
    refused = machine.kubectl.run("exec", name, "--", "sh", "-c", "exit 5")
    assert refused.code == 5


def test_hooks_run_after_the_start_and_before_the_stop(machine: Machine, folder: Path) -> None:
    file = folder / "hooks"
    after, before = (["sh", "-c", f"echo {word} >> {file}"] for word in ("after-start", "before-stop"))
    lifecycle = {"postStart": {"exec": {"command": after}}, "preStop": {"exec": {"command": before}}}
    name = created(machine, pod("hooked", "sleep", "1000", main={"lifecycle": lifecycle}))
    machine.kubectl("wait", name, "--for=condition=Ready", "--timeout=60s")
    assert file.read_text() == "after-start\n"

    machine.kubectl("delete", name, "--wait", "--grace-period=10")

    assert file.read_text() == "after-start\nbefore-stop\n"


def test_volumes_have_parts_and_follow_their_objects(machine: Machine) -> None:
    machine.kubectl("create", "configmap", "parts", "--from-literal=one=1")
    item = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    volumes: list[Obj] = [
        {"name": "config", "configMap": {"name": "parts"}},
        {"name": "down", "downwardAPI": {"items": [item]}},
        {"name": "empty", "emptyDir": {}},
    ]
    mounts = [
        {"name": "config", "mountPath": "/file", "subPath": "one"},
        {"name": "empty", "mountPath": "/own", "subPathExpr": "of/$(NAME)"},
        {"name": "empty", "mountPath": "/all"},
        {"name": "down", "mountPath": "/down"},
    ]
    env = [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    script = (
        'cd "$SHOAL_MOUNTS"; cat file; echo kept > own/kept; cat all/of/parts/kept;'
        "until grep -q new down/labels; do sleep 0.1; done; echo followed"
    )
    main = {"env": env, "volumeMounts": mounts}
    name = created(machine, pod("parts", "sh", "-c", script, main=main, volumes=volumes))
    machine.kubectl("wait", name, "--for=condition=Ready", "--timeout=60s")

    machine.kubectl("label", name, "app=new")
    until(machine, name, ".status.phase", "Succeeded")

    assert machine.kubectl("logs", name) == "1kept\nfollowed\n"


def test_ports_are_forwarded(machine: Machine) -> None:
    script = (
        "import http.server as h; s = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler);"
        "print(s.server_port, flush=True); s.serve_forever()"
    )
    name = created(machine, pod("serves", sys.executable, "-c", script))
    machine.kubectl("wait", name, "--for=condition=Ready", "--timeout=60s")
    # It returns when the program has printed something.
    machine.kubectl("logs", "--follow", "--limit-bytes=1", name)
    port = machine.kubectl("logs", name).strip()

    with forwarded(machine.kubectl, name, port) as local:
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{local}/", timeout=30) as answer:
                assert answer.status == 200
    machine.kubectl("delete", name, "--wait", "--grace-period=1")


def test_the_usage_of_the_machine_and_its_pods_is_shown(machine: Machine) -> None:
    name = created(machine, pod("busy", "sh", "-c", "while :; do :; done"))
    machine.kubectl("wait", name, "--for=condition=Ready", "--timeout=60s")

    used = top_of(machine.kubectl, "busy")

    node = machine.kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
    assert 0 < int(used[1].removesuffix("m")) < 2000
    assert machine.kubectl("top", "nodes", "--no-headers").split()[0] == node
    said = machine.kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/metrics/resource")
    assert 'pod_cpu_usage_seconds_total{namespace="default",pod="busy"}' in said
    machine.kubectl("delete", name, "--wait", "--grace-period=0")


def test_who_attaches_sees_what_the_process_prints(machine: Machine, folder: Path) -> None:
    file = folder / "attached"
    script = f"until test -e {file}; do echo waits; sleep 0.1; done; echo out; echo err >&2"
    name = created(machine, pod("prints", "sh", "-c", script))
    machine.kubectl("wait", name, "--for=condition=Ready", "--timeout=60s")

    command, pipe = machine.kubectl.command("attach", "-q", name), subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=machine.kubectl.environment())
    assert process.stdout is not None
    assert process.stdout.readline() == "waits\n"
    file.touch()
    out, err = process.communicate(timeout=60)

    assert (process.returncode, out.splitlines()[-1], err) == (0, "out", "err\n")


def test_a_killed_server_loses_no_process_and_starts_none_twice(machine: Machine, folder: Path) -> None:
    starts, hold = folder / "starts", folder / "hold"
    os.mkfifo(hold)
    name = created(machine, pod("survivor", "sh", "-c", f"echo $$ >> {starts}; read word < {hold}; echo $word"))
    until(machine, name, ".status.phase", "Running")
    ended = created(machine, pod("ended", "sh", "-c", f"read word < {hold}"))
    until(machine, ended, ".status.phase", "Running")

    machine.kill_and_start()

    until(machine, name, ".status.phase", "Running")
    with hold.open("w") as file:
        file.write("done\ndone\n")
    until(machine, name, ".status.phase", "Succeeded")
    assert len(starts.read_text().split()) == 1


def test_a_deleted_pod_leaves_no_process(machine: Machine, folder: Path) -> None:
    file = folder / "pid"
    name = created(machine, pod("deleted", "sh", "-c", f"echo $$$$ > {file}; exec sleep 1000"))
    until(machine, name, ".status.phase", "Running")
    machine.kubectl("wait", name, "--for=condition=Ready", "--timeout=60s")
    machine.kubectl("exec", name, "--", "sh", "-c", f"until test -s {file}; do :; done")

    machine.kubectl("delete", name, "--wait")

    assert not Path(f"/proc/{file.read_text().strip()}/fd/0").exists()


def test_a_namespace_without_the_label_is_refused(machine: Machine) -> None:
    machine.kubectl("create", "namespace", "strict")
    obj = pod("refused", "true")
    obj["metadata"]["namespace"] = "strict"
    created(machine, obj)
    inside = machine.kubectl.within("strict")
    inside("wait", "pod/refused", "--for=jsonpath={.status.phase}=Failed", "--timeout=60s")

    said = inside("get", "pod", "refused", "-o", "jsonpath={.status.reason}: {.status.message}")

    assert said.startswith("ProcessPodsNotAllowed: process pods are not allowed in the namespace strict")
    assert "kubectl label namespace strict shoal.dev/process-pods=allowed" in said


def test_what_is_not_supported_is_refused(machine: Machine) -> None:
    name = created(machine, pod("privileged", "true", main={"securityContext": {"privileged": True}}))
    until(machine, name, ".status.phase", "Failed")

    message = machine.kubectl("get", name, "-o", "jsonpath={.status.message}")

    assert message == "spec.containers[main].securityContext.privileged is not supported for process pods"


def test_a_pod_that_fills_a_volume_beyond_its_size_is_evicted(machine: Machine) -> None:
    volumes = [{"name": "cache", "emptyDir": {"sizeLimit": "1Mi"}}]
    mounts = {"volumeMounts": [{"name": "cache", "mountPath": "/cache"}]}
    script = 'dd if=/dev/zero of="$SHOAL_MOUNT_CACHE/file" bs=1M count=3 2>/dev/null; sleep 1000'
    name = created(machine, pod("filling", "sh", "-c", script, main=mounts, volumes=volumes))
    until(machine, name, ".status.phase", "Failed")

    assert machine.kubectl("get", name, "-o", "jsonpath={.status.reason}") == "Evicted"
    message = machine.kubectl("get", name, "-o", "jsonpath={.status.message}")
    assert message == 'Usage of EmptyDir volume "cache" exceeds the limit "1Mi". '
