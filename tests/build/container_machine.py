"""`shoal up --this-machine` with a real containerd, for tests that are its users."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from build.cluster_server import ServerProcess
from build.containerd import PAUSE, TOOLS, Containerd
from build.kubectl_runs import Kubectl

Obj = dict[str, Any]


class ContainerMachine:
    """Both may be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("containerd", "server", "home"):
            (folder / name).mkdir()
        self.containerd = Containerd(folder / "containerd")
        self.containerd.import_image(PAUSE, "/bin/busybox", "sleep", "100000")
        self.containerd.import_image(TOOLS, "/bin/busybox", "sh")
        self.server = self._start()
        self.kubectl = Kubectl(self.server.kubeconfig, folder / "home")

    def kill_server(self) -> None:
        self.server.stop(signal.SIGKILL)

    def start_server(self) -> None:
        self.server = self._start()

    def stop(self) -> None:
        self.kubectl("delete", "jobs,pods", "--all", "--wait", "--grace-period=1")
        # A pod that has ended leaves the API before its containers leave the runtime.
        self.containerd.until_empty()
        self.server.stop()
        self.containerd.stop()

    def create(self, name: str, script: str, container: Obj | None = None, **spec: Any) -> str:
        """A pod whose container runs a shell script; returns `pod/NAME`."""
        main = {"name": "main", "image": TOOLS, "command": ["/bin/sh", "-c", script], **(container or {})}
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "containers": [main], **spec}
        metadata = {"name": name, "namespace": "default"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        self.kubectl.client.ask("POST", "/api/v1/namespaces/default/pods", pod)
        return f"pod/{name}"

    def until(self, pod: str, path: str, value: str) -> None:
        self.kubectl("wait", pod, f"--for=jsonpath={{{path}}}={value}", "--timeout=60s")

    def until_ready(self, pod: str) -> None:
        self.kubectl("wait", pod, "--for=condition=Ready", "--timeout=60s")

    def field(self, pod: str, path: str) -> str:
        return self.kubectl("get", pod, "-o", f"jsonpath={{{path}}}")

    def run(self, name: str, script: str, container: Obj | None = None, **spec: Any) -> str:
        """What a pod printed that ended."""
        pod = self.create(name, script, container, **spec)
        self.kubectl("wait", pod, "--for=jsonpath={.status.containerStatuses[0].state.terminated}", "--timeout=60s")
        return self.kubectl("logs", pod)

    def _start(self) -> ServerProcess:
        options = ("--this-machine", "--runtime-endpoint", str(self.containerd.socket), "--no-foreign-kinds")
        return ServerProcess(self.folder / "server", *options, is_bare=False)
