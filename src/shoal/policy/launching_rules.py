"""Advises on how programs are started: launchers without a rendezvous, unset variables, GPUs selected by hand.

Such pods run without an error; that eight workers each train alone shows only in the result and the cost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shoal.api.groups.shoal import RENDEZVOUS
from shoal.policy.advice import Advice, Obj, RuleContext, rule
from shoal.policy.fields import dig, maps, string_keys, strings
from shoal.policy.kinds import CONFIG_MAP, NAMESPACE, SERVICE, VOLUME_CLAIM
from shoal.policy.pod_templates import command_words, gpus_of, pod_templates

_OLD_LAUNCHER = "torch.distributed.launch"
_NODES = re.compile(r"^--nnodes=(\S+)$")
_MEETING = ("--rdzv", "--master_addr", "--master-addr", "--standalone")
_VARIABLE = re.compile(r"(?<!\$)\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_SET_BY_CONTROLLERS = {
    "LeaderWorkerSet": ("LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX"),
}
_LAUNCHERS = ("torchrun", _OLD_LAUNCHER, "accelerate", "deepspeed", "mpirun", "horovodrun", "torch.distributed.run")
_RENDEZVOUS = f'annotate the pods {RENDEZVOUS}: "true" to have them start together, with rank, size and master given'
DEAD_IMAGES = {
    "nvidia/triton-inference-server": "Triton is published as nvcr.io/nvidia/tritonserver",
    "comfyui/comfyui": "ComfyUI publishes no image: name the one that you mean",
}
_SHORT_CUDA = re.compile(r"(?:nvcr\.io/)?nvidia/cuda:(\d+\.\d+)-(\S+)")


@rule(
    OldLauncher="the command uses torch.distributed.launch",
    NoRendezvous="torchrun starts several nodes without a rendezvous endpoint",
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


@rule(UnsetVariable="a command contains $(NAME), and the container has no such variable")
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


@rule(NoSuchService="MASTER_ADDR names no Service of the namespace")
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


@rule(VisibleDevicesByHand="NVIDIA_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES is set")
def visible_devices(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    """The device plugin decides which GPUs a container sees."""
    for template in pod_templates(obj):
        for path, container in template.containers():
            for at, one in enumerate(maps(container.get("env"))):
                name, value = one.get("name"), str(one.get("value") or "")
                if name == "NVIDIA_VISIBLE_DEVICES" and value not in ("", "none", "void"):
                    what = f"{value} can expose GPUs of the node that are allocated to other pods"
                    yield Advice("VisibleDevicesByHand", f"{path}.env[{at}]", f"{name}={what}", "leave it out")
                if name == "CUDA_VISIBLE_DEVICES" and value and gpus_of(container):
                    what = f"{value} selects among the GPUs of the container, which are numbered from 0 anyway"
                    yield Advice("VisibleDevicesByHand", f"{path}.env[{at}]", f"{name}={what}", "leave it out")


@rule(NoLauncher="a container requests several GPUs and starts one process")
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


@rule(
    RootLauncher="mpirun runs as root without --allow-run-as-root",
    TopologyNotPassed="a topology file is mounted, and NCCL does not use it",
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
            if "--allow-run-as-root" not in words and not _has_user(obj, template.spec, container):
                what = "mpirun refuses to run as root, the default user of most images"
                yield Advice("RootLauncher", f"{path}.command", what, "add --allow-run-as-root")
            if files and not any(word.startswith("NCCL_TOPO_FILE") for word in words):
                what = f"{files[0]} is mounted, but NCCL does not know about it"
                yield Advice("TopologyNotPassed", f"{path}.command", what, f"add -x NCCL_TOPO_FILE={files[0]}")


def _has_user(obj: Obj, spec: Obj, container: Obj) -> bool:
    """Whether the launcher runs as another user than root, as images with keys outside of /root do."""
    keys = str(dig(obj, "spec", "sshAuthMountPath") or "/root")
    users = (dig(each, "securityContext", "runAsUser") for each in (spec, container))
    return not keys.startswith("/root") or any(user is not None for user in users)


@rule(
    MissingConfigMap="a volume names a ConfigMap that does not exist",
    MissingPersistentVolumeClaim="a volume names a claim that does not exist",
)
def missing_volumes(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """For kinds whose pods an operator creates."""
    namespace = str(dig(obj, "metadata", "namespace") or "")
    reported: set[tuple[str, str]] = set()
    for template in pod_templates(obj):
        for at, volume in enumerate(maps(template.spec.get("volumes"))):
            here = f"{template.path}.volumes[{at}]"
            config, claim = dig(volume, "configMap", "name"), dig(volume, "persistentVolumeClaim", "claimName")
            for kind, name in ((CONFIG_MAP, config), (VOLUME_CLAIM, claim)):
                if isinstance(name, str) and (kind.name, name) not in reported and context.lacks(kind, namespace, name):
                    reported.add((kind.name, name))
                    what = f'{kind.name} "{name}" not found in namespace {namespace}: the pods would wait'
                    yield Advice(f"Missing{kind.name}", here, what, "create it")


@rule(NoSuchImage="no image is published under the name")
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


@rule(PodSecurity="the namespace enforces the level restricted, and the pods do not comply")
def pod_security(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """For kinds whose pods an operator creates: the namespace would reject them later, where few users look."""
    namespace = str(dig(obj, "metadata", "namespace") or "")
    labels = string_keys(dig(context.find(NAMESPACE, "", namespace), "metadata", "labels"))
    if labels.get("pod-security.kubernetes.io/enforce") != "restricted":
        return
    for template in pod_templates(obj):
        everywhere = dig(template.spec, "securityContext", "runAsNonRoot") is True
        for path, container in template.containers():
            inside = dig(container, "securityContext")
            if (everywhere or dig(inside, "runAsNonRoot") is True) and dig(inside, "allowPrivilegeEscalation") is False:
                continue
            yield Advice(
                "PodSecurity",
                f"{path}.securityContext",
                f"namespace {namespace} enforces the pod security level restricted, which refuses such pods",
                "set runAsNonRoot, allowPrivilegeEscalation: false, seccompProfile and drop all capabilities; or "
                "enforce baseline there",
            )
            return
