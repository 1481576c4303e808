"""`shoal join`: a second machine with GPUs of its own, over TLS, which survives the death of either side."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import signal
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from build.cluster_api import MERGE
from build.cluster_server import ServerProcess
from build.forwarded_ports import forwarded
from build.free_ports import free_port
from build.joined_process import JoinedProcess, shoal
from build.kubectl_runs import Kubectl
from build.pod_usage import top_of
from shoal.agent.kubelet.node_identity import NodeIdentity
from shoal.client.http.connection import Connection
from shoal.client.http.settings import KubeSettings
from shoal.client.refusals import RefusedError

pytestmark = [pytest.mark.external("kubectl"), pytest.mark.slow, pytest.mark.e2e]
Obj = dict[str, Any]
NODE = "second"


class Lab:
    """The server's machine, and a machine that joined it; tests may kill either."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.server = self._start()
        home = folder / "home"
        home.mkdir()
        self.kubectl = Kubectl(self.server.kubeconfig, home)
        self.command = self.token()
        self.machine = JoinedProcess(folder / "node", *self.command, "--name", NODE, "--fake", "dgx-h100")

    def token(self, *options: str) -> list[str]:
        """The arguments of `shoal join`, as `shoal node token` prints them."""
        done = shoal("node", "token", "--state", str(self.folder / "state"), *options)
        assert done.returncode == 0, done.stderr
        words = shlex.split(done.stdout)
        assert words[:2] == ["shoal", "join"]
        return words[2:]

    def restart_server(self) -> None:
        self.server.stop(signal.SIGKILL)
        self.server = self._start()

    def restart_machine(self) -> None:
        self.machine.stop(signal.SIGKILL)
        self.machine.again("--fake", "dgx-h100")

    async def as_node(self, method: str, path: str, body: Obj | None = None) -> int:
        """The code of the answer to the joined machine; writes are merge patches."""
        identity = NodeIdentity(self.folder / "node")
        cluster = identity.cluster()
        assert cluster is not None
        connection = Connection(identity.access(cluster), KubeSettings())
        try:
            await connection.ask(method, path, body=body, media=MERGE)
        except RefusedError as refused:
            return refused.code
        finally:
            await connection.close()
        return 200

    def _start(self) -> ServerProcess:
        options = ("--this-machine", "--no-foreign-kinds", "--host", "127.0.0.1")
        return ServerProcess(self.folder, *options, port=self.port, is_bare=False)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    found = Lab(tmp_path_factory.mktemp("lab"))
    found.kubectl("label", "namespace", "default", "shoal.dev/process-pods=allowed")
    yield found
    found.kubectl("delete", "jobs,pods", "--all", "--wait")
    found.machine.stop()
    found.server.stop()


def pod(name: str, *command: str, node: str = NODE, **main: Any) -> Obj:
    container = {"name": "main", "image": "none", "command": list(command), **main}
    spec: Obj = {"runtimeClassName": "process", "restartPolicy": "Never", "containers": [container]}
    spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def created(lab: Lab, obj: Obj) -> str:
    lab.kubectl.client.ask("POST", "/api/v1/namespaces/default/pods", obj)
    return f"pod/{obj['metadata']['name']}"


def until(lab: Lab, name: str, path: str, value: str) -> None:
    lab.kubectl("wait", name, f"--for=jsonpath={{{path}}}={value}", "--timeout=90s")


def test_the_machine_is_a_node_with_its_gpus(lab: Lab) -> None:
    lab.kubectl("wait", f"node/{NODE}", "--for=condition=Ready", "--timeout=60s")

    assert lab.kubectl("get", "node", NODE, "-o", r"jsonpath={.status.allocatable.nvidia\.com/gpu}") == "8"


def test_a_job_that_needs_both_machines_runs_on_both(lab: Lab) -> None:
    template = pod("", "sh", "-c", "echo here")
    del template["spec"]["nodeSelector"]
    labels = {"app": "both"}
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    template["spec"]["topologySpreadConstraints"] = [{**spread, "labelSelector": {"matchLabels": labels}}]
    spec = {"parallelism": 2, "completions": 2, "template": {"metadata": {"labels": labels}, "spec": template["spec"]}}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "both"}, "spec": spec}
    lab.kubectl.client.ask("POST", "/apis/batch/v1/namespaces/default/jobs", body)

    lab.kubectl("wait", "job/both", "--for=condition=Complete", "--timeout=90s")

    nodes = lab.kubectl("get", "pods", "-l", "app=both", "-o", "jsonpath={.items[*].spec.nodeName}").split()
    assert len(set(nodes)) == 2
    assert NODE in nodes


def test_logs_and_commands_of_its_pods_come_through_the_server(lab: Lab) -> None:
    limits = {"limits": {"nvidia.com/gpu": "2"}}
    name = created(lab, pod("remote", "sh", "-c", "echo on $CUDA_VISIBLE_DEVICES; exec sleep 1000", resources=limits))
    until(lab, name, ".status.phase", "Running")

    said = lab.kubectl("exec", name, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")

    assert said.count("GPU-") == 2
    assert lab.kubectl("logs", name) == f"on {said}"
    assert lab.kubectl.run("exec", name, "--", "sh", "-c", "exit 7").code == 7


def test_ports_and_usage_of_its_pods_come_through_the_server(lab: Lab) -> None:
    script = (
        "import http.server as h; s = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler);"
        "print(s.server_port, flush=True); s.serve_forever()"
    )
    name = created(lab, pod("serves", sys.executable, "-c", script))
    lab.kubectl("wait", name, "--for=condition=Ready", "--timeout=60s")
    # It returns when the program has printed something.
    lab.kubectl("logs", "--follow", "--limit-bytes=1", name)

    with forwarded(lab.kubectl, name, lab.kubectl("logs", name).strip()) as port:
        answer = urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30)
        assert answer.status == 200
    created(lab, pod("busy", "sh", "-c", "while :; do :; done"))
    assert top_of(lab.kubectl, "busy")[0] == "busy"
    nodes = [line.split()[0] for line in lab.kubectl("top", "nodes", "--no-headers").splitlines()]
    assert NODE in nodes
    assert len(nodes) == 2
    lab.kubectl("delete", name, "pod/busy", "--wait", "--grace-period=0")


def test_a_killed_agent_and_a_killed_server_lose_no_pod_and_start_none_twice(lab: Lab) -> None:
    starts, hold = lab.folder / "starts", lab.folder / "hold"
    os.mkfifo(hold)
    name = created(lab, pod("survivor", "sh", "-c", f"echo $$$$ >> {starts}; read word < {hold}; echo $word"))
    until(lab, name, ".status.phase", "Running")

    lab.restart_machine()
    assert lab.kubectl("exec", name, "--", "sh", "-c", "echo $HOSTNAME") == "survivor\n"
    lab.restart_server()
    until(lab, f"node/{NODE}", '.status.conditions[?(@.type=="Ready")].status', "True")
    with hold.open("w") as file:
        file.write("done\n")
    until(lab, name, ".status.phase", "Succeeded")

    assert lab.kubectl("logs", name) == "done\n"
    assert len(starts.read_text().split()) == 1


def test_a_pod_that_was_deleted_while_the_agent_was_dead_is_stopped(lab: Lab) -> None:
    file = lab.folder / "pid"
    name = created(lab, pod("left", "sh", "-c", f"echo $$$$ > {file}; exec sleep 1000"))
    until(lab, name, ".status.phase", "Running")
    lab.kubectl("exec", name, "--", "sh", "-c", f"until test -s {file}; do :; done")

    lab.machine.stop(signal.SIGKILL)
    lab.kubectl("delete", name, "--force", "--grace-period=0")
    alive = Path(f"/proc/{file.read_text().strip()}/fd/0").exists()
    lab.machine.again("--fake", "dgx-h100")
    done = created(lab, pod("after", "true"))
    until(lab, done, ".status.phase", "Succeeded")

    assert alive
    assert not Path(f"/proc/{file.read_text().strip()}/fd/0").exists()


async def test_a_node_writes_its_own_objects_only_and_reads_no_others(lab: Lab) -> None:
    lab.kubectl("create", "secret", "generic", "foreign", "--from-literal=a=b")
    other = lab.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}").replace(NODE, "").strip()
    theirs = created(lab, pod("theirs", "sleep", "1000", node=other))
    until(lab, theirs, ".status.phase", "Running")
    label = {"metadata": {"labels": {"a": "b"}}}

    codes = {
        what: await lab.as_node(method, path, body)
        for what, method, path, body in (
            ("its own Node", "PATCH", f"/api/v1/nodes/{NODE}", label),
            ("another Node", "PATCH", f"/api/v1/nodes/{other}", label),
            ("the status of another's pod", "PATCH", "/api/v1/namespaces/default/pods/theirs/status", {"status": {}}),
            ("another's pod", "GET", "/api/v1/namespaces/default/pods/theirs", None),
            ("all pods", "GET", "/api/v1/pods", None),
            ("a Secret that none of its pods uses", "GET", "/api/v1/namespaces/default/secrets/foreign", None),
            ("all nodes", "GET", "/api/v1/nodes", None),
            ("another's connection", "GET", f"/shoal/join/nodes/{other}/connection", None),
        )
    }

    assert codes.pop("its own Node") == 200
    assert set(codes.values()) == {403}, codes


def refused(lab: Lab, *arguments: str) -> str:
    """What `shoal join` says when it is refused."""
    done = shoal("join", "--state", str(lab.folder / "refused"), "--name", "third", *arguments)
    assert done.returncode == 2, done.stderr
    return done.stderr


def test_a_machine_without_a_valid_token_or_hash_is_refused_with_the_cause(lab: Lab) -> None:
    address, _, token, _, digest = lab.command
    wrong = f"{token[:-1]}{'a' if token[-1] != 'a' else 'b'}"
    expired = lab.token("--ttl", "1ms")[2]
    revoked = lab.token()[2]
    assert shoal("node", "revoke", revoked, "--state", str(lab.folder / "state")).returncode == 0

    for bad in (wrong, expired, revoked):
        said = refused(lab, address, "--token", bad, "--ca-hash", digest)
        assert "the token is wrong, has expired or was revoked" in said
    said = refused(lab, address, "--token", token, "--ca-hash", f"sha256:{'0' * 64}")
    assert "has another certificate authority" in said
    assert "Nothing was sent to it" in said
    said = refused(lab, address, "--token", token, "--ca-hash", digest, "--name", NODE)
    assert f"the cluster has a node {NODE} already" in said
    assert lab.kubectl.run("get", "node", "third").code == 1


def test_a_machine_stays_with_its_cluster(lab: Lab) -> None:
    done = shoal("join", "127.0.0.1:1", "--state", str(lab.folder / "node"))

    assert done.returncode == 2
    assert "another `shoal join` runs with this folder" in done.stderr


def test_a_detached_machine_is_ready_when_the_command_returns_and_continues_later(lab: Lab) -> None:
    folder = lab.folder / "third"
    options = ("--state", str(folder), "--fake", "g6.12xlarge", "--detach")

    def detached(*more: str) -> int:
        done = shoal("join", *more, *options)
        assert done.returncode == 0, done.stderr
        found = re.search(r"node third of https://\S+ is ready; `kill (\d+)` ends its process", done.stderr)
        assert found is not None, done.stderr
        ready = '{.status.conditions[?(@.type=="Ready")].status} {.status.allocatable.nvidia\\.com/gpu}'
        assert lab.kubectl("get", "node", "third", "-o", f"jsonpath={ready}") == "True 4"
        return int(found[1])

    pid = detached(*lab.token(), "--name", "third")
    again = shoal("join", *options)
    assert (again.returncode, "another `shoal join` runs with this folder" in again.stderr) == (2, True)
    os.kill(pid, signal.SIGTERM)
    with (folder / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    detached()
    access = ("--kubeconfig", str(lab.server.kubeconfig))
    removed = shoal("node", "remove", "third", "--now", *access)
    assert removed.returncode == 0, removed.stderr
    with (folder / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    assert "was removed from this cluster" in (folder / "shoal.log").read_text()


def test_a_detached_machine_without_a_valid_token_is_refused_before_anything_is_started(lab: Lab) -> None:
    folder = lab.folder / "fourth"
    done = shoal("join", "--state", str(folder), "127.0.0.1:1", "--detach")
    assert (done.returncode, "--token and --ca-hash are required" in done.stderr) == (2, True)
    assert not (folder / "shoal.log").exists()


def test_a_removed_machine_stops_its_pods_and_cannot_come_back(lab: Lab) -> None:
    file = lab.folder / "removed"
    lab.kubectl("delete", "pods", "--all", "--wait")
    name = created(lab, pod("last", "sh", "-c", f"echo $$$$ > {file}; exec sleep 1000"))
    until(lab, name, ".status.phase", "Running")
    lab.kubectl("exec", name, "--", "sh", "-c", f"until test -s {file}; do :; done")
    access = ("--kubeconfig", str(lab.server.kubeconfig))

    kept = shoal("node", "remove", NODE, *access)
    removed = shoal("node", "remove", NODE, "--now", *access)
    code = lab.machine.end()

    assert (kept.returncode, removed.returncode, code) == (2, 0, 2), lab.machine.log.read_text()
    assert "no controller would make default/last again" in kept.stderr
    assert "was removed from this cluster by an administrator" in lab.machine.log.read_text()
    assert not Path(f"/proc/{file.read_text().strip()}/fd/0").exists()
    assert lab.kubectl.run("get", "node", NODE).code == 1

    lab.machine = JoinedProcess(lab.folder / "node", *lab.token(), "--name", NODE, "--fake", "dgx-h100")
    lab.kubectl("wait", f"node/{NODE}", "--for=condition=Ready", "--timeout=60s")
    drained = shoal("node", "remove", NODE, "--force", *access)
    assert drained.stdout == f"node {NODE} is removed\n", drained.stderr
    assert lab.machine.end() == 2
