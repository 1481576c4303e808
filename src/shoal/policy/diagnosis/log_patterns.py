"""The forms of log lines that name a known problem of GPU programs, their drivers and their networks.

A pattern is words that a line contains in any order, in lower case. Guarantees: a line is searched for fixed texts
only, so that the time is linear in the text, whatever the text contains.
"""

from __future__ import annotations

from typing import Literal

import msgspec

LogTopic = Literal["memory", "network", "shared memory", "driver", "image", "launch", "program"]


class LogPattern(msgspec.Struct, frozen=True):
    id: str
    topic: LogTopic
    forms: tuple[tuple[str, ...], ...]
    """A line has this form if it contains all texts of one of them."""
    what: str
    fix: str
    commands: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """A line with one of these texts is of another pattern."""


SHARED_MEMORY = "/dev/shm"  # noqa: S108 - of containers
SHARED_MEMORY_FIX = (
    f"mount a volume with emptyDir.medium Memory at {SHARED_MEMORY}, and count its size into the memory limit"
)
_DISTRIBUTED = "torchrun --nnodes N --nproc-per-node GPUS --rdzv-backend c10d --rdzv-endpoint HOST:29400"
PATTERNS: tuple[LogPattern, ...] = (
    LogPattern(
        "CudaOutOfMemory",
        "memory",
        (
            ("cuda out of memory",),
            ("torch.outofmemoryerror",),
            ("torch.cuda.outofmemoryerror",),
            ("cuda_error_out_of_memory",),
            ("cudaerrormemoryallocation",),
            ("resourceexhaustederror", "oom when allocating tensor"),
            ("resource_exhausted: out of memory while trying to allocate",),
            ("cuda error: out of memory",),
        ),
        "the program needs more GPU memory than the GPU, or its share of the GPU, has free",
        "make the batch or the model smaller (gradient checkpointing, lower precision); where GPUs are shared by"
        " time-slicing, use MIG, whose memory is reserved; leave 60 s of grace period, so that a predecessor frees its"
        " memory; watch nvidia-smi while the program runs",
        ("shoal size MODEL --train full", "kubectl exec POD -- nvidia-smi"),
    ),
    LogPattern(
        "CacheTooSmall",
        "memory",
        (
            ("max seq len", "kv cache"),
            ("max_model_len", "kv cache"),
            ("no available memory for the cache blocks",),
            ("kv cache is needed, which is larger than the available",),
        ),
        "the memory that the weights leave free does not hold the cache of keys and values of the longest request",
        "start the server with a smaller --max-model-len, or with more memory: larger GPUs, more of them"
        " (--tensor-parallel-size), quantized weights, a higher --gpu-memory-utilization on a GPU that is not shared",
        ("shoal size MODEL --context TOKENS --concurrency 1",),
    ),
    LogPattern(
        "SharedMemoryTooSmall",
        "shared memory",
        (
            ("dataloader worker", "bus error"),
            ("insufficient shared memory (shm)",),
            ("unexpected bus error encountered in worker",),
            ("unable to open shared memory object", "no space left on device"),
            ("error while creating shared memory segment",),
            (SHARED_MEMORY, "no space left on device"),
            ("posix_fallocate failed", "shm"),
        ),
        f"{SHARED_MEMORY} of the container is too small: 64 MiB unless a volume is mounted there",
        SHARED_MEMORY_FIX,
    ),
    LogPattern(
        "NcclTimeout",
        "network",
        (
            ("watchdog caught collective operation timeout",),
            ("collective operation timeout", "ran for"),
            ("some nccl operations have failed or timed out",),
            ("nccl communicator was aborted",),
            ("distbackenderror", "nccl", "timeout"),
        ),
        "a collective operation of NCCL did not end in time: a rank has failed, waits, or is not reachable",
        "find the first rank that failed, in the logs of the other pods; set TORCH_NCCL_TRACE_BUFFER_SIZE and"
        " NCCL_DEBUG=INFO for the next run",
        ("kubectl logs -l training.kubeflow.org/job-name=JOB --all-containers --prefix --tail=50",),
    ),
    LogPattern(
        "NcclOverSockets",
        "network",
        (
            ("nccl info", "using network socket"),
            ("nccl info", "net/ib : no device found"),
            ("nccl info", "via net/socket"),
            ("failed to open libibverbs.so",),
        ),
        "NCCL uses TCP sockets instead of InfiniBand or RoCE: between nodes it reaches less than 200 GB/s",
        "request the RDMA resource of the nodes, set NCCL_IB_HCA to their adapters, and check with ibv_devinfo that the"
        " container sees them; with one node this does not matter",
        (
            "kubectl exec POD -- ibv_devinfo",
            "kubectl get nodes -o custom-columns=NAME:.metadata.name,RDMA:.status.allocatable",
        ),
        without=("via net/socket/shared/0",),
    ),
    LogPattern(
        "NcclWrongInterface",
        "network",
        (
            ("nccl warn", "no interface found"),
            ("nccl warn bootstrap", "no socket interface found"),
            ("nccl info bootstrap", "using docker0"),
            ("nccl info bootstrap", "using lo:"),
            ("nccl info net/socket", "using", "docker0:"),
            ("nccl info net/socket", "using", "] lo:"),
            ("gloo", "unable to find address for"),
        ),
        "NCCL uses a network interface that other nodes do not reach, or finds none of the name in NCCL_SOCKET_IFNAME",
        "set NCCL_SOCKET_IFNAME to the interface of the pod network: NCCL_SOCKET_IFNAME=eth0, or ^docker,lo to exclude",
        ("kubectl exec POD -- ip -brief address",),
    ),
    LogPattern(
        "NcclPeerUnreachable",
        "network",
        (
            ("nccl warn", "connection refused"),
            ("nccl warn", "connection closed by remote peer"),
            ("nccl warn", "no route to host"),
            ("nccl warn", "connection timed out"),
            ("ncclremoteerror",),
            ("nccl", "remote process exited or there was a network error"),
        ),
        "NCCL cannot reach another rank, or that rank has ended",
        "read the log of that rank first; else allow all ports between the pods of the job in its NetworkPolicy",
        ("kubectl get networkpolicies", "kubectl get pods -o wide"),
    ),
    LogPattern(
        "NcclSystemError",
        "network",
        (("ncclsystemerror",), ("ncclunhandledcudaerror",), ("nccl error", "unhandled system error")),
        "NCCL failed in a call of the system or of CUDA",
        "run again with NCCL_DEBUG=WARN, which names the call; often /dev/shm is too small or the driver is too old",
    ),
    LogPattern(
        "DriverLibraryMismatch",
        "driver",
        (("driver/library version mismatch",),),
        "the loaded kernel module and the user-space library of the driver have different versions: the driver was"
        " upgraded without a reload of the module",
        "drain the node, and restart it or its driver pod",
        ("kubectl drain NODE --ignore-daemonsets --delete-emptydir-data",),
    ),
    LogPattern(
        "DriverTooOld",
        "driver",
        (
            ("cuda driver version is insufficient for cuda runtime version",),
            ("the nvidia driver on your system is too old",),
            ("unsatisfied condition: cuda>=",),
            ("forward compatibility was attempted on non supported hw",),
        ),
        "the CUDA version of the image is newer than the driver of the node supports",
        "use an image of an older CUDA version, or upgrade the driver of the nodes",
        ("kubectl get nodes -L nvidia.com/cuda.driver-version.full -L nvidia.com/cuda.runtime-version.full",),
    ),
    LogPattern(
        "DriverNotFound",
        "driver",
        (
            ("could not load nvml library",),
            ("libnvidia-ml.so.1: cannot open shared object file",),
            ("nvidia-smi has failed because it couldn't communicate with the nvidia driver",),
            ("nvml: driver not loaded",),
            ("failed to initialize nvml: driver not loaded",),
            ("found no nvidia driver on your system",),
            ("nvidia-container-cli: initialization error", "driver not loaded"),
            ("nvidia-container-cli: initialization error", "load library failed"),
        ),
        "the NVIDIA driver is not loaded on the node, or the container has no access to it",
        "check the driver pod of the node, and that the container requests a GPU and uses the runtime of NVIDIA",
        ("kubectl get pods -A -l app=nvidia-driver-daemonset -o wide",),
    ),
    LogPattern(
        "FabricManagerNotRunning",
        "driver",
        (
            ("error 802: system not yet initialized",),
            ("cuda_error_system_not_ready",),
            ("cudaerrorsystemnotready",),
            ("system not yet initialized",),
        ),
        "the GPUs wait for the fabric manager: on machines with NVSwitch CUDA starts only once it has set up NVLink",
        "start nvidia-fabricmanager on the node, in the version of the driver, and see why it ended: journalctl -u"
        " nvidia-fabricmanager",
        (
            "kubectl debug node/NODE -it --image=ubuntu -- chroot /host systemctl status nvidia-fabricmanager",
            "kubectl exec POD -- nvidia-smi -q -d FABRIC",
        ),
    ),
    LogPattern(
        "GpuAccessLost",
        "driver",
        (("failed to initialize nvml: unknown error",),),
        "the container lost its GPUs: the systemd of the node reloaded its units, and the cgroup of the container lost"
        " the devices",
        "restart the pod; use CDI in the container toolkit, or the cgroupfs driver, so that it does not occur again",
        ("kubectl delete pod POD",),
    ),
    LogPattern(
        "NoGpuVisible",
        "driver",
        (("no cuda gpus are available",), ("no cuda-capable device is detected",), ("cuda_error_no_device",)),
        "the program sees no GPU",
        "request nvidia.com/gpu in the limits of this container, and set neither CUDA_VISIBLE_DEVICES nor"
        " NVIDIA_VISIBLE_DEVICES",
    ),
    LogPattern(
        "ArchitectureNotSupported",
        "driver",
        (
            ("no kernel image is available for execution on the device",),
            ("is not compatible with the current pytorch",),
        ),
        "the program was not compiled for this GPU model",
        "use an image that supports the compute capability of the GPU, or select another model",
        ("kubectl get nodes -L nvidia.com/gpu.product -L nvidia.com/gpu.compute.major",),
    ),
    LogPattern(
        "PluginConfigInvalid",
        "driver",
        (
            ("unable to load config",),
            ("failed to parse config",),
            ("no resources specified",),
            ("error parsing config file",),
            ("unknown field", "timeslicing"),
        ),
        "the device plugin refuses its configuration",
        "correct the ConfigMap of the plugin; shoal lint names the field",
        ("kubectl get configmaps -A -o yaml | shoal lint -",),
    ),
    LogPattern(
        "ImagePull",
        "image",
        (
            ("failed to pull image",),
            ("errimagepull",),
            ("imagepullbackoff",),
            ("pull access denied",),
            ("manifest unknown",),
            ("toomanyrequests",),
        ),
        "the image cannot be pulled",
        "check the name and the tag, and that imagePullSecrets has access to the registry",
        ("kubectl describe pod POD",),
    ),
    LogPattern(
        "OtherArchitecture",
        "image",
        (("exec format error",),),
        "the image is of another processor architecture than the node, or its first program is a script without #!",
        "use an image for the architecture of the node (kubernetes.io/arch), or select nodes of that of the image",
        ("kubectl get nodes -L kubernetes.io/arch", "kubectl describe pod POD"),
    ),
    LogPattern(
        "DiskFull",
        "program",
        (("no space left on device",), ("disk quota exceeded",)),
        "a file system is full: the volume that the program writes to, or the disk of the node",
        "write checkpoints and caches (HF_HOME, TMPDIR) to a volume with enough space, delete old ones, or enlarge the"
        " claim",
        ("kubectl exec POD -- df -h", "kubectl get pvc"),
        without=(SHARED_MEMORY, "shared memory", "shm"),
    ),
    LogPattern(
        "ContainerOutOfMemory",
        "memory",
        (("oomkilled",), ("oom-kill:",), ("memory cgroup out of memory",), ("out of memory: killed process",)),
        "the kernel ended a process that exceeded the memory limit of its container (not the memory of a GPU)",
        "raise the memory limit, or load less data at a time: fewer workers of the data loader, memory-mapped files",
    ),
    LogPattern(
        "RendezvousFailed",
        "launch",
        (
            ("rendezvoustimeouterror",),
            ("rendezvousconnectionerror",),
            ("the client socket has timed out after", "while trying to connect"),
            ("the client socket has failed to connect to",),
            ("torch.distributed.diststoreerror",),
            ("timed out waiting for clients", "clients joined"),
        ),
        "a worker of torchrun did not reach the rendezvous of the master, or not all workers came in time",
        "check MASTER_ADDR and MASTER_PORT, the headless Service of the job, and that all workers run",
        ("kubectl get pods,services", _DISTRIBUTED),
    ),
    LogPattern(
        "AddressInUse",
        "launch",
        (("the server socket has failed to listen",), ("eaddrinuse",), ("errno: 98 - address already in use",)),
        "the port of the rendezvous is in use on this machine: two launchers run, or hostNetwork is shared by two jobs",
        "use another MASTER_PORT for each job, or leave out hostNetwork",
    ),
    LogPattern(
        "WorkerFailed",
        "launch",
        (("childfailederror",), ("torch.distributed.elastic.multiprocessing.api:failed",)),
        "a process that torchrun started has failed; its own traceback is the cause",
        "read the log above, of the rank that is named as root cause",
    ),
    LogPattern(
        "RankEnvironmentMissing",
        "launch",
        (
            ("error initializing torch.distributed using env:// rendezvous",),
            ("environment variable", "expected, but not set"),
            ("invalid device ordinal",),
        ),
        "a rank does not know its place: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR or MASTER_PORT is not set, or the"
        " program starts more processes than it has GPUs",
        "start the program with torchrun, with one process for each GPU of the container",
        (_DISTRIBUTED,),
    ),
    LogPattern(
        "DeepSpeedStartFailed",
        "launch",
        (
            ("unable to proceed with multi-node training",),
            ("deepspeed", "hostfile", "not found"),
            ("pdsh: command not found",),
            ("no such file or directory: 'pdsh'",),
            ("deepspeed", "exits with return code"),
            ("[launch.py", "killing subprocess"),
        ),
        "the launcher of DeepSpeed cannot start its workers, or one of them has failed",
        "give a hostfile and password-less ssh, or start each pod with torchrun, which needs neither",
    ),
    LogPattern(
        "NoCompiler",
        "launch",
        (
            ("cuda_home does not exist",),
            ("cuda_home environment variable is not set",),
            ("ninja is required to load c++ extensions",),
            ("missingcudaexception",),
            ("error building extension",),
        ),
        "the program compiles CUDA code when it starts, and the image lacks the compiler, its headers or Ninja",
        "use a devel image with nvcc and ninja, or an image in which they are compiled (DS_BUILD_OPS=1 for DeepSpeed)",
        ("kubectl exec POD -- ds_report",),
    ),
    LogPattern(
        "MpiStartFailed",
        "launch",
        (
            ("mpirun has detected an attempt to run as root",),
            ("orte was unable to reliably start one or more daemons",),
            ("prte was unable to reliably start one or more daemons",),
            ("there are not enough slots available in the system",),
            ("mpirun was unable to",),
            ("permission denied (publickey",),
            ("ssh: could not resolve hostname",),
        ),
        "mpirun cannot start its processes",
        "as root use --allow-run-as-root; make slots in the hostfile at least the number of processes; wait for the"
        " workers' sshd before mpirun starts",
        ("kubectl get pods -l training.kubeflow.org/job-role=worker",),
    ),
    LogPattern(
        "UncorrectableMemoryError",
        "program",
        (("cuda error: uncorrectable ecc error encountered",), ("cuda_error_ecc_uncorrectable",)),
        "the GPU reported a memory error that cannot be corrected",
        "find its Xid in the kernel log of the node, drain the node and reset the GPU",
        ("shoal doctor node NODE", "shoal xid 48"),
    ),
    LogPattern(
        "IllegalAccess",
        "program",
        (
            ("an illegal memory access was encountered",),
            ("cuda_error_illegal_address",),
            ("device-side assert triggered",),
        ),
        "the program made an invalid access or failed an assertion on the GPU: most often an error of the program",
        "run with CUDA_LAUNCH_BLOCKING=1, which shows the call; if other programs fail on the same GPU, check its Xids",
    ),
)
