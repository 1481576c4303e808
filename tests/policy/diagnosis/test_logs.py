"""Which problems the forms of real log messages show, and that other lines show none."""

from __future__ import annotations

import pytest

from build.diagnosed_clusters import causes, diagnosed, event, gpu_node, pod_ended, running, waiting
from build.manifests import Object
from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster
from shoal.policy.diagnosis.log_patterns import PATTERNS
from shoal.policy.diagnosis.log_reading import causes_in, logged_xid, read_log
from shoal.policy.diagnosis.trees import pods_with_logs
from shoal.policy.diagnosis.verdicts import Patient, RuledOut
from shoal.policy.kinds import POD
from shoal.policy.object_set import key_of

FORMS: list[tuple[str, str]] = [
    ("CudaOutOfMemory", "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.78 GiB total)"),
    ("CudaOutOfMemory", "torch.OutOfMemoryError: CUDA out of memory. GPU 3 has a total capacity of 79.15 GiB"),
    ("CudaOutOfMemory", "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1073741824 bytes."),
    ("SharedMemoryTooSmall", "RuntimeError: DataLoader worker (pid 71) is killed by signal: Bus error. It is possible"),
    ("SharedMemoryTooSmall", "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient"),
    ("SharedMemoryTooSmall", "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-abc (size 9637888)"),
    ("NcclTimeout", "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8, OpType=ALLREDUCE) ran"),
    ("NcclOverSockets", "train-0:71:92 [0] NCCL INFO Using network Socket"),
    ("NcclOverSockets", "train-0:71:92 [0] NCCL INFO NET/IB : No device found."),
    ("NcclWrongInterface", "train-0:71:92 [0] NCCL WARN Bootstrap : no socket interface found"),
    ("NcclWrongInterface", "train-0:71:92 [0] NCCL INFO Bootstrap: Using docker0:172.17.0.1<0>"),
    (
        "NcclPeerUnreachable",
        "train-1:80:95 [1] NCCL WARN Connect to 10.0.0.4<4> failed: Connection refused",
    ),
    ("NcclSystemError", "ncclSystemError: System call (e.g. socket, malloc) or external library call failed"),
    ("DriverLibraryMismatch", "Failed to initialize NVML: Driver/library version mismatch"),
    ("DriverTooOld", "CUDA driver version is insufficient for CUDA runtime version"),
    (
        "DriverTooOld",
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, update your driver",
    ),
    ("DriverNotFound", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."),
    ("DriverNotFound", "failed to initialize NVML: could not load NVML library"),
    ("FabricManagerNotRunning", "Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized"),
    (
        "CacheTooSmall",
        "ValueError: The model's max seq len (131072) is larger than the tokens that can be stored in KV cache (12345)",
    ),
    ("CacheTooSmall", "ValueError: No available memory for the cache blocks."),
    ("OtherArchitecture", "standard_init_linux.go:228: exec user process caused: exec format error"),
    ("DiskFull", "OSError: [Errno 28] No space left on device"),
    ("NoCompiler", "AssertionError: DeepSpeed: CUDA_HOME does not exist, unable to compile CUDA op(s)"),
    ("NoCompiler", "RuntimeError: Ninja is required to load C++ extensions"),
    ("GpuAccessLost", "Failed to initialize NVML: Unknown Error"),
    ("NoGpuVisible", "RuntimeError: No CUDA GPUs are available"),
    ("ArchitectureNotSupported", "CUDA error: no kernel image is available for execution on the device"),
    ("PluginConfigInvalid", "E1127 main.go:132] error starting plugins: unable to load config: no resources specified"),
    ("ImagePull", 'Failed to pull image "registry.example/x:1": rpc error: code = NotFound'),
    ("ContainerOutOfMemory", "Memory cgroup out of memory: Killed process 71 (python) total-vm:91kB, anon-rss:5kB"),
    ("ContainerOutOfMemory", "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri-abc"),
    ("RendezvousFailed", "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError"),
    (
        "RendezvousFailed",
        "The client socket has failed to connect to [train-0]:29500 (errno: 111).",
    ),
    ("AddressInUse", "The server socket has failed to listen on any local network address. useIpv6: 0, code: -98"),
    ("WorkerFailed", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"),
    ("RankEnvironmentMissing", "ValueError: Error initializing torch.distributed using env:// rendezvous: environment"),
    ("RankEnvironmentMissing", "RuntimeError: CUDA error: invalid device ordinal"),
    ("DeepSpeedStartFailed", "Unable to find hostfile, unable to proceed with multi-node training"),
    ("DeepSpeedStartFailed", "[INFO] [launch.py:315:sigkill_handler] Killing subprocess 301"),
    ("MpiStartFailed", "mpirun has detected an attempt to run as root."),
    (
        "MpiStartFailed",
        "There are not enough slots available in the system to satisfy the 16 slots requested",
    ),
    ("UncorrectableMemoryError", "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
    ("IllegalAccess", "RuntimeError: CUDA error: an illegal memory access was encountered"),
    ("Xid79", "[ 123.4] NVRM: Xid (PCI:0000:53:00): 79, pid=1234, GPU has fallen off the bus."),
    ("Xid48", "Nov 27 12:00:00 n kernel: NVRM: Xid (PCI:0000:3b:00): 48, pid='<unknown>', name=<unknown>, DBE"),
]


@pytest.mark.parametrize(("identifier", "line"), FORMS)
def test_a_line_shows_one_problem(identifier: str, line: str) -> None:
    (cause,) = causes_in(f"epoch 1\n{line}\nepoch 2\n", "log")
    assert cause.id == identifier
    assert cause.evidence == (line,)


def test_every_pattern_has_a_message_that_shows_it() -> None:
    assert {pattern.id for pattern in PATTERNS} <= {identifier for identifier, _ in FORMS}


@pytest.mark.parametrize(
    "line",
    [
        "NCCL INFO Using network IB",
        "NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.4<0>",
        "NCCL INFO Bootstrap : Using eth0:10.0.0.4<0>",
        "loaded 12 shards, memory 40 GiB of 80 GiB",
        "xid 79 of the form",
    ],
)
def test_other_lines_show_none(line: str) -> None:
    (verdict,) = read_log(line, "log")
    assert isinstance(verdict, RuledOut)


def test_two_problems_of_one_log_are_two_causes() -> None:
    text = "NCCL INFO Using network Socket\nRuntimeError: CUDA out of memory.\n"
    assert [cause.id for cause in causes_in(text, "log")] == ["CudaOutOfMemory", "NcclOverSockets"]


def test_a_consequence_is_left_out_where_its_cause_is_in_the_log() -> None:
    text = "RuntimeError: CUDA out of memory.\nChildFailedError: x\nWatchdog caught collective operation timeout\n"
    assert [cause.id for cause in causes_in(text, "log")] == ["CudaOutOfMemory"]
    xids = "NVRM: Xid (PCI:0000:53:00): 48, x\nNVRM: Xid (PCI:0000:53:00): 45, x\n"
    assert [cause.id for cause in causes_in(xids, "log")] == ["Xid48"]


def test_many_lines_of_a_problem_are_counted() -> None:
    (cause,) = causes_in("CUDA out of memory\n" * 1_000, "log")
    assert cause.evidence[-1] == "and 997 more lines"


def test_control_characters_and_long_lines_of_a_log_are_shortened() -> None:
    (cause,) = causes_in("\x1b[31mCUDA out of memory\x1b[0m " + "x" * 100_000, "log")
    assert len(cause.evidence[0]) < 400
    assert "\x1b" not in cause.evidence[0]


@pytest.mark.parametrize(
    "line", ["NVRM: Xid (PCI:0000:53:00): ", "NVRM: Xid", "NVRM: Xid (x): many", "NVRM: Xid (x): ٣"]
)
def test_an_xid_without_a_number_is_none(line: str) -> None:
    assert logged_xid(line) is None
    assert causes_in(line, "log") == []


# -- states of containers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("rpc error: code = NotFound: manifest unknown", "no such image or tag"),
        ("pull access denied, 401 Unauthorized", "refuses access"),
        ("toomanyrequests: You have reached your pull rate limit", "limits the pulls"),
        ("dial tcp: lookup registry.example: no such host", "does not reach the registry"),
    ],
)
def test_an_image_that_cannot_be_pulled_says_why(message: str, words: str) -> None:
    broken = pod_ended(waiting={"reason": "ImagePullBackOff", "message": message})
    (cause,) = diagnosed("pod", "team/train", broken).causes
    assert (cause.id, words in cause.what) == ("ImagePull", True)


def test_a_container_over_its_memory_limit_names_the_limit() -> None:
    (cause,) = diagnosed("pod", "team/train", pod_ended(137, "OOMKilled", memory="4Gi")).causes
    assert cause.id == "ContainerOutOfMemory"
    assert "the memory limit of 4Gi" in cause.what


def test_a_bus_error_is_shared_memory() -> None:
    (cause,) = diagnosed("pod", "team/train", pod_ended(135)).causes
    assert cause.id == "SharedMemoryTooSmall"
    assert "no volume is mounted" in cause.what


def test_the_last_message_of_a_container_is_read_like_a_log() -> None:
    assert causes("pod", "team/train", pod_ended(1, message="RuntimeError: CUDA out of memory.")) == ["CudaOutOfMemory"]


def test_a_container_that_the_runtime_cannot_create_names_the_driver_or_the_toolkit() -> None:
    def created(message: str) -> list[str]:
        return causes("pod", "team/train", pod_ended(waiting={"reason": "RunContainerError", "message": message}))

    assert created("nvml error: driver/library version mismatch: unknown") == ["DriverLibraryMismatch"]
    assert created('no runtime for "nvidia" is configured') == ["RuntimeHandlerMissing"]
    assert created("unresolvable CDI devices nvidia.com/gpu=0") == ["DeviceSpecMissing"]


@pytest.mark.parametrize(
    ("message", "cause", "words"),
    [
        ('secret "hub" not found', "MissingSecret", 'Secret "hub" does not exist in namespace team'),
        ('configmap "settings" not found', "MissingConfigMap", 'ConfigMap "settings" does not exist in namespace team'),
        ("couldn't find key token in Secret team/hub", "MissingSecret", 'Secret "hub" has no key token'),
    ],
)
def test_a_container_without_its_secret_names_what_is_missing(message: str, cause: str, words: str) -> None:
    broken = pod_ended(waiting={"reason": "CreateContainerConfigError", "message": message})
    (found,) = diagnosed("pod", "team/train", broken).causes
    assert (found.id, words in found.what) == (cause, True)


def _being_created() -> Object:
    made = pod_ended(waiting={"reason": "ContainerCreating"})
    made["spec"]["volumes"] = [{"name": "keys", "secret": {"secretName": "hub"}}]
    return made


def test_a_volume_without_its_secret_is_known_from_events() -> None:
    broken = _being_created()
    told = event(broken, "FailedMount", 'MountVolume.SetUp failed for volume "keys" : secret "hub" not found')
    found = diagnosed("cluster", "", gpu_node("gpu-1"), broken, told)
    assert [(each.id, each.subject) for each in found.causes] == [("MissingSecret", "pod team/train")]


def test_a_volume_that_was_mounted_later_is_no_cause() -> None:
    broken = _being_created()
    told = event(broken, "FailedMount", 'MountVolume.SetUp failed for volume "keys" : secret "hub" not found')
    pulling = event(broken, "Pulling", 'Pulling image "train"')
    told["lastTimestamp"], pulling["lastTimestamp"] = "2026-11-27T12:00:00Z", "2026-11-27T12:10:00Z"
    assert diagnosed("cluster", "", gpu_node("gpu-1"), broken, pulling, told).causes == ()


def test_without_events_it_is_not_known_whether_the_secret_of_a_pod_that_is_being_created_exists() -> None:
    found = diagnosed("pod", "team/train", _being_created())
    assert found.causes == ()
    (unchecked,) = [each for each in found.not_run if each.check == "whether Secret hub exists"]
    assert "kubectl get secret hub -n team" in unchecked.why


def test_an_image_that_needs_a_login_shows_the_secret_that_was_not_found() -> None:
    broken = pod_ended(waiting={"reason": "ErrImagePull", "message": "401 Unauthorized"})
    told = event(broken, "FailedToRetrieveImagePullSecret", "Unable to retrieve some image pull secrets (registry)")
    (found,) = diagnosed("pod", "team/train", broken, told).causes
    assert "(registry)" in found.evidence[1]


def test_memory_and_a_log_are_two_causes() -> None:
    ended = pod_ended(137, "OOMKilled", memory="4Gi")
    logs = {"team/train": "NCCL INFO Using network Socket\n"}
    assert causes("pod", "team/train", ended, logs=logs) == ["ContainerOutOfMemory", "NcclOverSockets"]


def test_the_logs_of_pods_that_do_not_run_well_are_wanted() -> None:
    ended, other = pod_ended(1), running("well")
    facts = DiagnosedCluster([ended, other, waiting("new")], {POD})
    wanted = {
        str(patient): ["/".join(key_of(pod)) for pod in pods_with_logs(facts, patient)]
        for patient in (
            Patient("cluster"),
            Patient("node", "gpu-1"),
            Patient("pod", "train", "team"),
            Patient("pod", "well", "team"),
            Patient("pod", "new", "team"),
            Patient("queue", "q", "team"),
        )
    }
    assert wanted == {
        "cluster": ["team/train"],
        "node gpu-1": ["team/train"],
        "pod team/train": ["team/train"],
        "pod team/well": ["team/well"],
        "pod team/new": [],
        "queue team/q": [],
    }


def test_an_error_of_a_node_is_not_said_of_its_pods_again() -> None:
    broken, ended = gpu_node("gpu-1"), pod_ended(1)
    told = event(broken, "GPUXidError", "GPU-1: Xid 79, GPU has fallen off the bus")
    logs = {"team/train": "NVRM: Xid (PCI:0000:53:00): 79, pid=1\n"}
    found = diagnosed("cluster", "", broken, ended, told, logs=logs)
    assert [(each.id, each.subject) for each in found.causes if each.id == "Xid79"] == [("Xid79", "node gpu-1")]
    alone = diagnosed("cluster", "", gpu_node("gpu-1"), ended, logs=logs)
    assert [each.subject for each in alone.causes if each.id == "Xid79"] == ["pod team/train"]


def test_a_pod_without_states_of_containers_and_without_a_log_is_not_checked() -> None:
    found = diagnosed("pod", "team/train", running("train"))
    assert found.causes == ()
    assert {"its log", "how its containers started and ended"} <= {each.check for each in found.not_run}


def all_reduce(busbw: float, wrong: str = "0 OK") -> str:
    return (
        "#     size   count   type  redop  root   time  algbw  busbw #wrong   time  algbw  busbw #wrong\n"
        f"  8589934592  2147483648  float  sum  -1  33000  260.00  {busbw}  0  33000  260.0  {busbw}  0\n"
        f"# Out of bounds values : {wrong}\n# Avg bus bandwidth    : {busbw}\n"
    )


def test_the_output_of_all_reduce_perf_is_judged_as_the_smoke_test_judges_it() -> None:
    (slow,) = causes_in(all_reduce(92.5), "log")
    assert slow.id == "SlowAllReduce"
    assert slow.evidence[0] == "log: 92.5 GB/s bus bandwidth at 8,192 MiB"
    (wrong,) = causes_in(all_reduce(480.0, "3 FAILED"), "log")
    assert wrong.id == "WrongResults"
    good = read_log(all_reduce(480.0), "log")
    assert good[0] == RuledOut("log", "480.0 GB/s bus bandwidth at 8,192 MiB")
