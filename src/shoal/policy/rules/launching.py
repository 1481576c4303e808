"""Advises on how programs are started: launchers without a rendezvous, unset variables, GPUs selected by hand.

Such pods run without an error; that eight workers each train alone shows only in the result and the cost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shoal.api.groups.shoal import RENDEZVOUS
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, maps, strings
from shoal.policy.kinds import (
    MPI_JOB,
    SERVICE,
    TRAINING_JOBS,
    WITH_PODS,
    WORKLOADS,
)
from shoal.policy.pod_templates import command_words, gpus_of, pod_templates

_OLD_LAUNCHER = "torch.distributed.launch"
_NODES = re.compile(r"^--nnodes=(\S+)$")
_MEETING = ("--rdzv", "--master_addr", "--master-addr", "--standalone")
_VARIABLE = re.compile(r"(?<!\$)\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_SET_BY_CONTROLLERS = {
    "LeaderWorkerSet": ("LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX"),
}
_LAUNCHERS = ("torchrun", _OLD_LAUNCHER, "accelerate", "deepspeed", "mpirun", "horovodrun", "torch.distributed.run")
_ALLOWING_ROOT = frozenset({"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"})
"""Variables by which Open MPI runs as root; it needs both."""
_RENDEZVOUS = f'annotate the pods {RENDEZVOUS}: "true" to have them start together, with rank, size and master given'
DEAD_IMAGES = {
    "nvidia/triton-inference-server": "Triton is published as nvcr.io/nvidia/tritonserver",
    "comfyui/comfyui": "ComfyUI publishes no image: name the one that you mean",
}
_SHORT_CUDA = re.compile(r"(?:nvcr\.io/)?nvidia/cuda:(\d+\.\d+)-(\S+)")


@check(
    Rule(
        "SHL-301",
        "OldLauncher",
        "warning",
        fault="the command uses torch.distributed.launch",
        effect="current releases of PyTorch warn about the launcher, and it does not restart workers",
        fix="start the program with torchrun, and read LOCAL_RANK from the environment",
        at_admission="warning",
        bad="""\
name: train
image: registry.example/train:1.4
command: [python, -m, torch.distributed.launch, train.py]
""",
        changes=(Change("python, -m, torch.distributed.launch", "torchrun"),),
    ),
    Rule(
        "SHL-302",
        "NoRendezvous",
        "error",
        fault="torchrun starts several nodes without a rendezvous endpoint",
        effect="the workers do not find each other and wait until the timeout",
        fix="give --rdzv_endpoint=HOST:PORT, or let Shoal set rank and master by annotation",
        at_admission="warning",
        bad="""\
name: train
image: registry.example/train:1.4
command: [torchrun, --nnodes=2, train.py]
""",
        changes=(Change("--nnodes=2", "--nnodes=2, --rdzv_endpoint=train-0.train:29500"),),
    ),
    kinds=WITH_PODS,
    options=CheckOptions(hints=(b"torch",)),
)
def launchers(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """Finds superseded launchers, and launchers of several nodes without a rendezvous endpoint."""
    for template in pod_templates(obj):
        for path, container in template.containers():
            words = command_words(container)
            if _OLD_LAUNCHER in words:
                yield Advice(
                    "OldLauncher",
                    f"{path}.command",
                    f"{_OLD_LAUNCHER} is deprecated and will be removed",
                    "write torchrun, and read LOCAL_RANK from the environment",
                )
            nodes = next((found[1] for word in words if (found := _NODES.match(word))), "1")
            meets = template.annotations.get(RENDEZVOUS) == "true" or any(word.startswith(_MEETING) for word in words)
            if nodes != "1" and not meets and "torchrun" in words:
                yield Advice(
                    "NoRendezvous",
                    f"{path}.command",
                    f"torchrun starts {nodes} nodes without a rendezvous endpoint: each waits for the others by itself",
                    f"give --rdzv_endpoint=HOST:PORT; {_RENDEZVOUS}",
                )


@check(
    Rule(
        "SHL-303",
        "UnsetVariable",
        "error",
        fault="a command contains $(NAME), and the container has no such variable",
        effect="the command gets the text $(NAME) itself",
        fix="add the variable to env",
        links=(
            "https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/",
        ),
        at_admission="warning",
        bad="""\
name: train
image: registry.example/train:1.4
args: [--rank=$(RANK)]
env: [{name: WORLD_SIZE, value: "2"}]
""",
        changes=(Change("name: WORLD_SIZE", "name: RANK"),),
    ),
    kinds=WITH_PODS,
    options=CheckOptions(hints=(b"$(",)),
)
def unset_variables(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """Kubernetes replaces `$(NAME)` in a command by a variable of the container, and keeps it if there is none."""
    for template in pod_templates(obj):
        for path, container in template.containers():
            if container.get("envFrom"):
                continue
            known = {*_SET_BY_CONTROLLERS.get(str(obj.get("kind")), ())}
            known |= {str(one.get("name")) for one in maps(container.get("env"))}
            # There $(date) is the output of a program.
            shell = "-c" in command_words(container)
            for field in ("command", "args"):
                for at, word in enumerate(strings(container.get(field))):
                    for name in _VARIABLE.findall(word):
                        if name not in known and "\n" not in word and not (shell and name.islower()):
                            yield _unset(obj, f"{path}.{field}[{at}]", name)


def _unset(obj: Obj, path: str, name: str) -> Advice:
    what = f"variable {name} is not set: the program gets the text $({name})"
    fix = f"add {name} to env"
    if obj.get("kind") == "Job" and name == "POD_INDEX":
        fix = "write completionMode: Indexed with completions, and $(JOB_COMPLETION_INDEX)"
    return Advice("UnsetVariable", path, what, fix)


@check(
    Rule(
        "SHL-304",
        "NoSuchService",
        "error",
        fault="MASTER_ADDR names no Service of the namespace",
        effect="the address does not resolve, so the workers wait until the timeout",
        fix="create a headless Service of this name",
        evidence="cluster",
        at_admission="warning",
        bad="""\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.example/train:1.4", env: [{name: MASTER_ADDR, value: master}]}]
---
apiVersion: v1
kind: Service
metadata: {name: train}
spec: {clusterIP: None}
""",
        changes=(Change("value: master", "value: train"),),
    ),
    kinds=WORKLOADS,
)
def master_addresses(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """A host name without dots can only be resolved as a Service."""
    namespace = str(dig(obj, "metadata", "namespace") or "")
    reported: set[str] = set()
    for template in pod_templates(obj):
        for path, container in template.containers():
            for at, one in enumerate(maps(container.get("env"))):
                host = one.get("value")
                if (
                    one.get("name") != "MASTER_ADDR"
                    or not isinstance(host, str)
                    or not _is_bare(host)
                    or host in reported
                ):
                    continue
                if context.lacks(SERVICE, namespace, host):
                    reported.add(host)
                    yield Advice(
                        "NoSuchService",
                        f"{path}.env[{at}]",
                        f'MASTER_ADDR is {host}, but Service "{host}" not found in namespace {namespace}',
                        f"create a headless Service, or {_RENDEZVOUS}",
                    )


def _is_bare(host: str) -> bool:
    return bool(re.fullmatch(r"[a-z][a-z0-9-]*", host)) and host != "localhost"


@check(
    Rule(
        "SHL-306",
        "NoLauncher",
        "warning",
        fault="a container requests several GPUs and starts one process",
        effect="the other GPUs are allocated and idle",
        fix="start a process for each GPU, as with torchrun --nproc_per_node",
        at_admission="warning",
        bad="""\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
          - name: pytorch
            image: registry.example/train:1.4
            command: [python, train.py]
            resources: {limits: {nvidia.com/gpu: 8}}
""",
        changes=(Change("[python, train.py]", "[torchrun, --nproc_per_node=8, train.py]"),),
    ),
    kinds=tuple(kind for kind in TRAINING_JOBS if kind != MPI_JOB),
)
def idle_gpus(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """Finds containers with several GPUs and without a launcher: one process uses one GPU."""
    for template in pod_templates(obj):
        for path, container in template.containers():
            gpus, words = gpus_of(container), command_words(container)
            if gpus > 1 and not any(launcher in " ".join(words) for launcher in _LAUNCHERS):
                yield Advice(
                    "NoLauncher",
                    f"{path}.command",
                    f"{gpus} GPUs and no launcher in the command: one process would use one of them, unless the image "
                    "starts more",
                    f"start it with torchrun --nproc_per_node={gpus}",
                )


@check(
    Rule(
        "SHL-307",
        "RootLauncher",
        "error",
        fault="mpirun runs as root without --allow-run-as-root",
        effect="mpirun ends at once",
        fix="add --allow-run-as-root, or run the launcher as another user",
        at_admission="warning",
        bad="""\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: train}
spec:
  mpiReplicaSpecs:
    Launcher:
      template:
        spec: {containers: [{name: main, image: "registry.example/train:1.4", command: [mpirun, -n, "8", train]}]}
""",
        changes=(Change("[mpirun, ", "[mpirun, --allow-run-as-root, "),),
    ),
    Rule(
        "SHL-308",
        "TopologyNotPassed",
        "warning",
        fault="a topology file is mounted, and NCCL does not use it",
        effect="NCCL chooses paths without the file",
        fix="add -x NCCL_TOPO_FILE=FILE to mpirun",
        at_admission="warning",
        bad="""\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: train}
spec:
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - {name: main, image: "registry.example/train:1.4", command: [mpirun, --allow-run-as-root, train]}
    Worker:
      template:
        spec:
          containers:
          - {name: main, image: "registry.example/train:1.4", volumeMounts: [{name: topology, mountPath: /topo.xml}]}
          volumes: [{name: topology, configMap: {name: topology}}]
""",
        changes=(Change("--allow-run-as-root,", "--allow-run-as-root, -x, NCCL_TOPO_FILE=/topo.xml,"),),
    ),
    kinds=(MPI_JOB,),
)
def mpi_launchers(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """Finds options that mpirun needs as root, and with a topology file for its workers."""
    files: list[str] = []
    for template in pod_templates(obj):
        files += [
            str(mount.get("mountPath"))
            for _, container in template.containers()
            for mount in maps(container.get("volumeMounts"))
            if str(mount.get("mountPath")).endswith(".xml")
        ]
    for template in pod_templates(obj):
        for path, container in template.containers():
            words = command_words(container)
            if "mpirun" not in words:
                continue
            if "--allow-run-as-root" not in words and not _may_launch(obj, template.spec, container):
                what = "mpirun refuses to run as root, the default user of most images"
                yield Advice("RootLauncher", f"{path}.command", what, "add --allow-run-as-root")
            if files and not any(word.startswith("NCCL_TOPO_FILE") for word in words):
                what = f"{files[0]} is mounted, but NCCL does not know about it"
                yield Advice("TopologyNotPassed", f"{path}.command", what, f"add -x NCCL_TOPO_FILE={files[0]}")


def _may_launch(obj: Obj, spec: Obj, container: Obj) -> bool:
    """Whether the launcher runs as another user than root, as images with keys outside of /root do, or variables
    allow mpirun to run as root."""
    keys = str(dig(obj, "spec", "sshAuthMountPath") or "/root")
    if not keys.startswith("/root") or {str(one.get("name")) for one in maps(container.get("env"))} >= _ALLOWING_ROOT:
        return True
    # The container's goes before the pod's.
    users = [dig(each, "securityContext", "runAsUser") for each in (container, spec)]
    chosen = next((user for user in users if user is not None), None)
    if chosen is not None:
        return bool(chosen != 0)
    return any(dig(each, "securityContext", "runAsNonRoot") is True for each in (container, spec))


@check(
    Rule(
        "SHL-311",
        "NoSuchImage",
        "error",
        fault="no image is published under the name",
        effect="the image cannot be pulled",
        fix="name an image that is published",
        at_admission="warning",
        bad="""\
name: test
image: nvidia/cuda:12.3-base-ubuntu22.04
""",
        changes=(Change("12.3-base", "12.3.0-base"),),
    ),
    kinds=WITH_PODS,
    options=CheckOptions(hints=(b"nvidia/", b"comfyui")),
)
def dead_images(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """Names under which no image is published; this queries no registry."""
    for template in pod_templates(obj):
        for path, container in template.containers():
            image = str(container.get("image") or "")
            fix = DEAD_IMAGES.get(image.partition(":")[0].removeprefix("docker.io/"), "")
            short = _SHORT_CUDA.fullmatch(image)
            if short:
                fix = f"tags have three numbers: {image.partition(':')[0]}:{short[1]}.0-{short[2]}"
            if fix:
                yield Advice("NoSuchImage", f"{path}.image", f"{image} is not published", fix)
