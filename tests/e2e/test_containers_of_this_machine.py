"""`shoal up --this-machine` with containerd: kubectl runs real containers, and they survive the death of Shoal and of
containerd."""

from __future__ import annotations

import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from build.container_machine import ContainerMachine
from build.containerd import TOOLS, may_run
from build.forwarded_ports import forwarded
from build.free_ports import free_port
from build.pod_usage import top_of
from build.terminal_process import TerminalProcess
from docs.pages import ROOT

pytestmark = [
    pytest.mark.external("kubectl", "containerd", "ctr", "runc", "busybox"),
    pytest.mark.slow,
    pytest.mark.skipif(not may_run(), reason="only root starts containers"),
]
Obj = dict[str, Any]
STATE = ".status.containerStatuses[0].state"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerMachine]:
    found = ContainerMachine(tmp_path_factory.mktemp("containers"))
    yield found
    found.stop()


def test_a_pod_has_its_environment_its_volumes_and_its_address(machine: ContainerMachine) -> None:
    machine.kubectl("create", "configmap", "numbers", "--from-literal=one=1")
    machine.kubectl("create", "secret", "generic", "hidden", "--from-literal=word=secret")
    env = [
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "hidden", "key": "word"}}},
        {"name": "BOTH", "value": "$(WORD)-$(NODE)"},
    ]
    downward = {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.name"}}]}
    volumes: list[Obj] = [
        {"name": "config", "configMap": {"name": "numbers"}},
        {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": "down", "downwardAPI": downward},
    ]
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("config", "memory", "down")]
    script = (
        'echo $BOTH "$@"; cat /config/one; echo; cat /down/labels; echo; pwd;'
        "dd if=/dev/zero of=/memory/x bs=1M count=2 2>/dev/null; stat -c %s /memory/x;"
        "stat -c %s /var/run/secrets/kubernetes.io/serviceaccount/token | grep -c .; echo last > /dev/termination-log"
    )
    more = {"env": env, "volumeMounts": mounts, "args": ["sh", "$(WORD)"], "workingDir": "/down"}

    said = machine.run("volumes", script, more, volumes=volumes)

    node = machine.field("pod/volumes", ".spec.nodeName")
    assert said.split("\n") == [f"secret-{node} secret", "1", "volumes", "/down", "1048576", "1", ""]
    assert machine.field("pod/volumes", f"{STATE}.terminated.message") == "last\n"
    assert machine.field("pod/volumes", ".status.podIP") == machine.field("pod/volumes", ".status.hostIP")


def test_parts_of_volumes_are_mounted_and_labels_follow(machine: ContainerMachine, tmp_path: Path) -> None:
    machine.kubectl("create", "configmap", "parts", "--from-literal=one=1", "--from-literal=two=2")
    item = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    volumes: list[Obj] = [
        {"name": "config", "configMap": {"name": "parts"}},
        {"name": "down", "downwardAPI": {"items": [item]}},
        {"name": "host", "hostPath": {"path": str(tmp_path)}},
    ]
    mounts = [
        {"name": "config", "mountPath": "/bin/one", "subPath": "one"},
        {"name": "host", "mountPath": "/host", "subPathExpr": "of/$(NAME)"},
        {"name": "down", "mountPath": "/down"},
    ]
    env = [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    script = "cat /bin/one; echo; ls /bin/two 2>/dev/null; echo kept > /host/file; sleep 1000"
    pod = machine.create("parts", script, {"env": env, "volumeMounts": mounts}, volumes=volumes)
    machine.until_ready(pod)
    assert machine.kubectl("logs", pod) == "1\n"

    machine.kubectl("label", pod, "app=new")

    machine.kubectl("exec", pod, "--", "sh", "-c", "until grep -q new /down/labels; do sleep 0.1; done")
    machine.kubectl("delete", pod, "--wait", "--grace-period=1")
    assert (tmp_path / "of" / "parts" / "file").read_text() == "kept\n"
    assert not [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "/subpaths/" in line]


def test_programs_find_the_api_server(machine: ContainerMachine) -> None:
    said = machine.run("finds", "echo $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT")

    server = machine.kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
    assert f"https://{said.strip()}" == server


def test_security_options_reach_the_container(machine: ContainerMachine) -> None:
    context = {
        "runAsUser": 1000,
        "runAsGroup": 2000,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    volume = {"name": "own", "emptyDir": {}}
    script = (
        "id -u; id -g; id -G; touch /x 2>/dev/null || echo read-only; touch /own/x && stat -c %g /own/x;"
        "grep -c 'NoNewPrivs.*1' /proc/self/status; grep CapEff /proc/self/status"
    )
    more = {"securityContext": context, "volumeMounts": [{"name": "own", "mountPath": "/own"}]}

    said = machine.run("secure", script, more, volumes=[volume], securityContext={"fsGroup": 3000}).split("\n")

    assert said[:2] == ["1000", "2000"]
    assert "3000" in said[2]
    assert said[3:6] == ["read-only", "3000", "1"]
    assert said[6].split() == ["CapEff:", "0000000000000000"]


def test_limits_of_processor_memory_and_processes_are_enforced(machine: ContainerMachine) -> None:
    limits = {"resources": {"limits": {"cpu": "500m", "memory": "64Mi"}}}
    script = (
        "for at in 1 2 3 4 5; do sleep 100 & done; for file in cpu/cpu.cfs_quota_us memory/memory.limit_in_bytes; do "
        "cat /sys/fs/cgroup/$file 2>/dev/null; done; cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/memory.max 2>/dev/null;"
        "true"
    )

    said = machine.run("limited", script, limits).split()

    assert said in (["50000", "67108864"], ["50000", "100000", "67108864"])
    forks = "n=0; while sleep 1000 & do n=$((n+1)); [ $n -gt 5000 ] && exit 7; done; exit 8"
    machine.run("forks", forks)
    assert machine.field("pod/forks", f"{STATE}.terminated.exitCode") not in ("7", "0")


def test_init_containers_come_first_and_sidecars_beside(machine: ContainerMachine) -> None:
    shared = {"name": "shared", "mountPath": "/shared"}
    base = {"image": TOOLS, "volumeMounts": [shared]}
    inits = [
        {"name": "first", "command": ["sh", "-c", "echo first > /shared/file"], **base},
        {
            "name": "beside",
            "restartPolicy": "Always",
            "command": ["sh", "-c", "echo beside >> /shared/file; sleep 1000"],
            "startupProbe": {"exec": {"command": ["grep", "beside", "/shared/file"]}, "periodSeconds": 1},
            **base,
        },
    ]
    volumes = [{"name": "shared", "emptyDir": {}}]

    said = machine.run("ordered", "cat /shared/file", {"volumeMounts": [shared]}, initContainers=inits, volumes=volumes)

    assert said == "first\nbeside\n"
    machine.until("pod/ordered", ".status.phase", "Succeeded")


def test_hooks_run_in_the_container(machine: ContainerMachine, tmp_path: Path) -> None:
    volumes = [{"name": "shared", "hostPath": {"path": str(tmp_path)}}]
    after, before = (["sh", "-c", f"echo {word} >> /shared/hooks"] for word in ("after-start", "before-stop"))
    lifecycle = {"postStart": {"exec": {"command": after}}, "preStop": {"exec": {"command": before}}}
    more = {"lifecycle": lifecycle, "volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    pod = machine.create("hooked", "sleep 1000", more, volumes=volumes)
    machine.until_ready(pod)
    assert (tmp_path / "hooks").read_text() == "after-start\n"

    machine.kubectl("delete", pod, "--wait", "--grace-period=3")

    assert (tmp_path / "hooks").read_text() == "after-start\nbefore-stop\n"


def test_logs_exec_and_describe_work_as_with_any_cluster(machine: ContainerMachine) -> None:
    pod = machine.create("shown", 'trap "exit 0" TERM; echo started; while :; do sleep 0.1; done')
    machine.until_ready(pod)

    assert machine.kubectl("logs", pod) == "started\n"
    assert machine.kubectl("exec", pod, "--", "sh", "-c", "echo out; echo err >&2").split() == ["out"]
    assert machine.kubectl.run("exec", pod, "--", "sh", "-c", "exit 5").code == 5
    assert machine.kubectl("exec", "-i", pod, "--", "cat", given="piped\n") == "piped\n"
    refused = machine.kubectl.run("exec", pod, "--", "no-such-program")
    assert refused.code != 0
    assert "no-such-program" in refused.out + refused.err
    described = machine.kubectl("describe", pod)
    for words in ("Container ID:  containerd://", "Pulled", "Created", "Started", "already present on machine"):
        assert words in described


def test_exec_has_a_terminal_that_is_resized(machine: ContainerMachine) -> None:
    pod = machine.create("terminal", "sleep 1000")
    machine.until_ready(pod)
    command = machine.kubectl.command("exec", "-it", pod, "--", "sh")
    with TerminalProcess(command, (99, 33), **machine.kubectl.environment()) as terminal:
        terminal.type(b"while [ \"$(stty size)\" != '33 99' ]; do :; done; echo a-$((40+2))\n")
        terminal.shows("a-42")
        terminal.resize(88, 22)
        terminal.type(b"while [ \"$(stty size)\" != '22 88' ]; do :; done; echo b-$((40+3))\n")
        terminal.shows("b-43")
        terminal.type(b"exit 6\n")
        assert terminal.told() == "ended 6"


def test_ports_are_forwarded(machine: ContainerMachine) -> None:
    port = free_port()
    script = f"echo -n hello > /file; httpd -f -p 127.0.0.1:{port} -h /"
    probe = {"tcpSocket": {"host": "127.0.0.1", "port": port}, "periodSeconds": 1}
    pod = machine.create("serves", script, {"readinessProbe": probe})
    machine.until_ready(pod)

    with forwarded(machine.kubectl, pod, str(port)) as local:
        answer = urllib.request.urlopen(f"http://127.0.0.1:{local}/file", timeout=30)
        assert answer.read() == b"hello"
    machine.kubectl("delete", pod, "--wait", "--grace-period=1")


def test_who_attaches_sees_what_the_program_prints_and_gives_it_input(machine: ContainerMachine) -> None:
    pod = machine.create("talks", "read word; echo got-$word; read word", {"stdin": True, "stdinOnce": True})
    machine.until_ready(pod)

    assert machine.kubectl("attach", "-i", "-q", pod, given="hello\n\n") == "got-hello\n"


def test_the_usage_of_containers_is_shown(machine: ContainerMachine) -> None:
    pod = machine.create("busy", "while :; do :; done")
    machine.until_ready(pod)

    used = top_of(machine.kubectl, "busy")

    assert 0 < int(used[1].removesuffix("m")) < 2000
    machine.kubectl("delete", pod, "--wait", "--grace-period=0")


def test_an_image_that_does_not_exist_is_not_pulled_at_once_again(machine: ContainerMachine) -> None:
    pod = machine.create("no-image", "true", {"image": "localhost:1/none:1"})

    machine.until(pod, f"{STATE}.waiting.reason", "ImagePullBackOff")

    events = machine.kubectl("get", "events", "--field-selector=involvedObject.name=no-image", "-o", "name")
    said = machine.kubectl("describe", pod)
    assert 'Failed to pull image "localhost:1/none:1"' in said
    assert 'Back-off pulling image "localhost:1/none:1"' in said
    assert events
    machine.kubectl("delete", pod, "--wait")


def test_an_image_that_must_not_be_pulled_is_named(machine: ContainerMachine) -> None:
    pod = machine.create("never", "true", {"image": "localhost/other:1", "imagePullPolicy": "Never"})

    machine.until(pod, f"{STATE}.waiting.reason", "ErrImageNeverPull")
    machine.kubectl("delete", pod, "--wait")


def test_a_command_that_does_not_exist_is_the_reason_of_the_end(machine: ContainerMachine) -> None:
    pod = machine.create("no-command", "", {"command": ["/no-such-program"]})

    machine.until(pod, f"{STATE}.terminated.reason", "StartError")

    assert machine.field(pod, f"{STATE}.terminated.exitCode") == "128"
    assert "no-such-program" in machine.field(pod, f"{STATE}.terminated.message")


def test_a_container_that_fails_waits_longer_after_each_restart(machine: ContainerMachine) -> None:
    pod = machine.create("crashes", "echo run; exit 3", restartPolicy="Always")

    machine.until(pod, f"{STATE}.waiting.reason", "CrashLoopBackOff")

    assert machine.field(pod, ".status.containerStatuses[0].lastState.terminated.exitCode") == "3"
    assert machine.kubectl("logs", pod) == "run\n"
    machine.kubectl("delete", pod, "--wait")


def test_a_pod_that_ignores_sigterm_is_killed_after_its_grace_period(machine: ContainerMachine) -> None:
    pod = machine.create("stubborn", 'trap "" TERM; while :; do sleep 0.1; done', terminationGracePeriodSeconds=1)
    machine.until_ready(pod)

    machine.kubectl("delete", pod, "--wait")

    assert machine.kubectl.run("get", pod).code == 1


def test_what_containers_cannot_have_is_refused(machine: ContainerMachine) -> None:
    pod = machine.create("aliases", "true", hostAliases=[{"ip": "10.0.0.1", "hostnames": ["other"]}])
    machine.until(pod, ".status.phase", "Failed")

    assert machine.field(pod, ".status.reason") == "UnsupportedByContainers"
    words = "spec.hostAliases is not supported for containers on this node"
    assert machine.field(pod, ".status.message") == words
    machine.kubectl("delete", pod, "--wait")


def test_the_commands_of_the_guide_work(machine: ContainerMachine) -> None:
    page = (ROOT / "docs" / "how-to" / "this-machine.md").read_text(encoding="utf-8")
    block = re.search(r"^```sh\n(.*?)^```$", page.split("## Run containers")[1], re.MULTILINE | re.DOTALL)
    assert block is not None
    machine.containerd.import_image("docker.io/library/busybox:1.36", "/bin/busybox", "sh")

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block[1]],
        env=machine.kubectl.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    files, answer = done.stdout.splitlines()[-2:]
    assert files == "files: name"
    assert answer.startswith('boxedpod "boxed" deleted')


@pytest.mark.parametrize("victim", ["server", "containerd", "both"])
def test_a_killed_process_loses_no_container_and_starts_none_twice(
    machine: ContainerMachine, tmp_path: Path, victim: str
) -> None:
    starts, hold = tmp_path / "starts", tmp_path / "hold"
    os.mkfifo(hold)
    volumes = [{"name": "shared", "hostPath": {"path": str(tmp_path)}}]
    more = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    script = "echo $$ >> /shared/starts; read word < /shared/hold; exit 4"
    pod = machine.create(f"survives-{victim}", script, more, volumes=volumes)
    crashing = machine.create(f"restarts-{victim}", "sleep 1000", restartPolicy="Always")
    machine.until_ready(pod)
    machine.until_ready(crashing)
    id_ = machine.field(pod, ".status.containerStatuses[0].containerID")

    if victim != "containerd":
        machine.kill_server()
    if victim != "server":
        machine.containerd.kill_and_start()
    if victim != "containerd":
        machine.start_server()

    machine.until_ready(crashing)
    assert machine.kubectl("exec", crashing, "--", "sh", "-c", "echo alive") == "alive\n"
    with hold.open("w") as file:
        file.write("done\n")
    machine.until(pod, ".status.phase", "Failed")
    assert machine.field(pod, f"{STATE}.terminated.exitCode") == "4"
    assert machine.field(pod, ".status.containerStatuses[0].containerID") == id_
    assert len(starts.read_text().split()) == 1
    assert machine.field(crashing, ".status.containerStatuses[0].restartCount") == "0"


def test_a_container_that_ends_while_shoal_is_dead_is_reported_afterwards(
    machine: ContainerMachine, tmp_path: Path
) -> None:
    hold = tmp_path / "hold"
    os.mkfifo(hold)
    volumes = [{"name": "shared", "hostPath": {"path": str(tmp_path)}}]
    more = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    pod = machine.create("ends", "read word < /shared/hold; echo $word > /shared/done; exit 9", more, volumes=volumes)
    machine.until_ready(pod)
    machine.kill_server()
    with hold.open("w") as file:
        file.write("word\n")
    machine.start_server()

    machine.until(pod, ".status.phase", "Failed")

    assert machine.field(pod, f"{STATE}.terminated.exitCode") == "9"


def test_a_deleted_pod_leaves_nothing_at_the_runtime(machine: ContainerMachine) -> None:
    volumes = [{"name": "memory", "emptyDir": {"medium": "Memory"}}]
    mounts = {"volumeMounts": [{"name": "memory", "mountPath": "/memory"}]}
    pod = machine.create("leaves", "sleep 1000", mounts, volumes=volumes)
    machine.until_ready(pod)
    uid = machine.field(pod, ".metadata.uid")
    assert uid in Path("/proc/self/mountinfo").read_text()

    machine.kubectl("delete", pod, "--wait", "--grace-period=1")

    folder = machine.folder / "server" / "state" / "this-machine" / "pods" / uid
    machine.kubectl("run", "after", f"--image={TOOLS}", "--restart=Never", "--command", "--", "sh", "-c", "true")
    machine.until("pod/after", ".status.phase", "Succeeded")
    assert not folder.exists()
    assert uid not in Path("/proc/self/mountinfo").read_text()


def test_a_container_that_writes_more_than_its_limit_is_evicted(machine: ContainerMachine) -> None:
    limits = {"resources": {"limits": {"ephemeral-storage": "1Mi"}}}
    pod = machine.create("writer", "dd if=/dev/zero of=/file bs=1M count=4 2>/dev/null; sleep 1000", limits)
    machine.until(pod, ".status.phase", "Failed")

    message = "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "
    assert machine.field(pod, ".status.reason") == "Evicted"
    assert machine.field(pod, ".status.message") == message


def test_a_pod_with_users_of_its_own_is_refused(machine: ContainerMachine) -> None:
    pod = machine.create("users", "sleep 1000", hostUsers=False)
    machine.until(pod, ".status.phase", "Failed")

    assert machine.field(pod, ".status.reason") == "UnsupportedByContainers"
    assert machine.field(pod, ".status.message").startswith("spec.hostUsers: false is not supported")
