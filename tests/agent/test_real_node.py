"""The commands of the agent on the GPUs of this machine, on which nothing is changed. Skipped without a driver."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from build.agent_process import AgentProcess
from build.api_objects import ready_for_pods
from build.cluster_api import Api
from build.cluster_server import ServerProcess
from build.fake_kubelet import fake_kubelet
from shoal.agent.nvml import NvmlDriver
from shoal.agent.nvml_library import nvml_library
from shoal.agent.sharing.mps_control import PROGRAM, MpsControl
from shoal.devices.mps_daemons import MpsDaemon, MpsFolders, MpsGpu
from shoal.devices.port import InstalledGpu
from shoal.units.errors import UserError

pytestmark = pytest.mark.gpu
_EXAMPLES = Path(__file__).parents[2] / "examples" / "gpu"
_LIMIT_S = 300


@pytest.fixture(name="gpus", scope="module")
def gpus_fixture() -> tuple[InstalledGpu, ...]:
    try:
        driver = NvmlDriver(nvml_library())
    except UserError as error:
        pytest.skip(f"no GPU: {error}")
    listed = driver.gpus().gpus
    driver.close()
    return listed


def _shoal(*arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "shoal", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    return done.returncode, done.stdout or done.stderr


def test_the_check_lists_every_gpu_and_finds_no_fault(gpus: tuple[InstalledGpu, ...]) -> None:
    code, text = _shoal("agent", "check", "-o", "json")

    report = json.loads(text)
    assert code == 0, report
    assert re.findall(r"GPU-[0-9a-f-]{36}", text)[: len(gpus)] == [gpu.uuid for gpu in gpus]


def test_the_validator_makes_a_cuda_call(gpus: tuple[InstalledGpu, ...]) -> None:
    code, text = _shoal("agent", "validate", "--layers", "driver,devices,cuda", "-o", "json")

    states = {result["layer"]: result["state"] for result in json.loads(text)}
    assert (code, states) == (0, {"driver": "passed", "devices": "passed", "cuda": "passed"}), text


def test_the_cdi_specification_names_files_and_device_nodes_that_exist(gpus: tuple[InstalledGpu, ...]) -> None:
    code, text = _shoal("agent", "cdi")

    assert code == 0, text
    spec = json.loads(text)
    parts = [spec["containerEdits"], *(device["containerEdits"] for device in spec["devices"])]
    nodes = [node.get("hostPath", node["path"]) for part in parts for node in part.get("deviceNodes", ())]
    mounts = [mount["hostPath"] for part in parts for mount in part.get("mounts", ())]
    assert "/dev/nvidiactl" in nodes
    assert [path for path in nodes if not stat.S_ISCHR(Path(path).stat().st_mode)] == []
    assert [path for path in mounts if not Path(path).exists()] == []
    assert any(Path(path).name.startswith("libcuda.so.") for path in mounts)
    assert {gpu.uuid for gpu in gpus} <= {device["name"] for device in spec["devices"]}


def test_the_plugin_hands_the_gpus_to_a_kubelet(gpus: tuple[InstalledGpu, ...], tmp_path: Path) -> None:
    if any(gpu.is_mig for gpu in gpus):
        pytest.skip("the GPUs are in MIG mode")
    with fake_kubelet(tmp_path) as kubelet:
        agent = AgentProcess(tmp_path)
        try:
            kubelet.until(lambda: kubelet.allocatable() == len(gpus))
            envs = dict(kubelet.allocate("one", 1).envs)
        finally:
            code, words = agent.end()
    assert envs["NVIDIA_VISIBLE_DEVICES"] in {gpu.uuid for gpu in gpus}
    assert code == 0, words


@pytest.fixture(name="mps")
def mps_fixture(gpus: tuple[InstalledGpu, ...], tmp_path: Path) -> Iterator[tuple[MpsControl, MpsDaemon]]:
    if shutil.which(PROGRAM) is None:
        pytest.skip(f"{PROGRAM} is not on the path")
    if gpus[0].is_mig:
        pytest.skip("the GPU is in MIG mode")
    daemon = MpsDaemon(
        MpsFolders(str(tmp_path), "gpu"),
        (MpsGpu(gpus[0].index, gpus[0].uuid, (gpus[0].memory_mib or 0) // 2),),
        50,
    )
    for folder in (daemon.folders.pipe, daemon.folders.log):
        Path(folder).mkdir(parents=True)
    control = MpsControl()
    control.start(daemon)
    yield control, daemon
    control.end(daemon)


def test_a_daemon_of_mps_takes_limits_and_serves_two_programs(mps: tuple[MpsControl, MpsDaemon]) -> None:
    control, daemon = mps
    assert control.is_healthy(daemon)
    assert control.process(daemon) is not None
    control.set_limits(daemon)
    assert float(control.send(daemon, "get_default_active_thread_percentage")) == 50

    command = [sys.executable, str(_EXAMPLES / "compare.py"), "--seconds", "1", "--json", "--framework", "cuda"]
    environment = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": daemon.folders.pipe}
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_LIMIT_S, env=environment)

    shared = [row for row in json.loads(done.stdout)["rows"] if row["case"] == "MPS"]
    assert [row["program"] for row in shared] == ["train", "serve"], shared
    assert control.clients(daemon) == 0
    # There is a server now, whose limits are set as well.
    control.set_limits(daemon)


async def test_pods_of_this_machine_compute_on_the_gpus_of_which_there_are_too_few(
    gpus: tuple[InstalledGpu, ...], tmp_path: Path
) -> None:
    if gpus[0].is_mig:
        pytest.skip("the GPU is in MIG mode")
    server = ServerProcess(tmp_path, "--this-machine", "--no-foreign-kinds", is_bare=False)
    try:
        async with Api.open(server.kubeconfig) as api:
            await api.make_namespace({"shoal.dev/process-pods": "allowed"})
            await ready_for_pods(api)
            names = [f"train-{number}" for number in range(len(gpus) + 1)]
            for name in names:
                (await api.post(api.core("pods"), _training_pod(name))).ok(201)
            used = [await _seconds_of_use(api, name) for name in names]
    finally:
        server.stop()
    assert max(begin for begin, _ in used) >= min(end for _, end in used), "more pods than GPUs ran at a time"


async def _seconds_of_use(api: Api, name: str) -> tuple[str, str]:
    """When its process began and ended, after it computed something."""
    async with api.watch(api.core("pods"), fieldSelector=f"metadata.name={name}", timeoutSeconds=120) as watch:
        while True:
            pod = (await watch.next_of("ADDED", "MODIFIED"))["object"]
            if pod["status"].get("phase") in ("Succeeded", "Failed"):
                break
    log = (await api.get(api.core("pods", name, "log"))).raw.decode()
    assert pod["status"]["phase"] == "Succeeded", (pod["status"], log)
    assert json.loads(log.splitlines()[-1])["per_second"] > 0
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    return ended["startedAt"], ended["finishedAt"]


def _training_pod(name: str) -> dict[str, Any]:
    command = [sys.executable, str(_EXAMPLES / "train.py"), "--seconds", "2", "--json", "--framework", "cuda"]
    limits = {"nvidia.com/gpu": "1"}
    # Only the test knows where a driver is installed that is not in the usual place.
    libraries = os.environ.get("LD_LIBRARY_PATH", "")
    env = [{"name": "LD_LIBRARY_PATH", "value": libraries}] if libraries else []
    main = {"name": "main", "image": "none", "command": command, "env": env, "resources": {"limits": limits}}
    spec = {"runtimeClassName": "process", "restartPolicy": "Never", "containers": [main]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
