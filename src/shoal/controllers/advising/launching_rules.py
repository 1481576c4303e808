"""How programs are started: launchers that never find each other, variables that nobody sets, devices taken by hand.

A pod runs whatever it was told to; that eight workers each train alone shows only in the bill.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shoal.controllers.advising.advice import Advice
from shoal.controllers.advising.around import Around, dig, maps, named, texts
from shoal.controllers.advising.templates import gpus_of, shapes, words_of
from shoal.store.live.item import Obj
from shoal.store.live.kind import CONFIG_MAPS, NAMESPACES, SERVICES, VOLUME_CLAIMS
from shoal.store.pod_makers import RENDEZVOUS

_OLD_LAUNCHER = "torch.distributed.launch"
_NODES = re.compile(r"^--nnodes=(\S+)$")
_MEETING = ("--rdzv", "--master_addr", "--master-addr", "--standalone")
_VARIABLE = re.compile(r"(?<!\$)\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_LAUNCHERS = ("torchrun", _OLD_LAUNCHER, "accelerate", "deepspeed", "mpirun", "horovodrun", "torch.distributed.run")
_RENDEZVOUS = f'annotate the pods {RENDEZVOUS}: "true" to have them start together, with rank, size and master given'
DEAD_IMAGES = {
    "nvidia/triton-inference-server": "Triton is published as nvcr.io/nvidia/tritonserver",
    "comfyui/comfyui": "ComfyUI publishes no image: name the one that you mean",
}
_SHORT_CUDA = re.compile(r"(?:nvcr\.io/)?nvidia/cuda:(\d+\.\d+)-(\S+)")


def launchers(obj: Obj, _: Around) -> Iterator[Advice]:
    """Superseded ones, and those that start several nodes without saying where these meet."""
    for shape in shapes(obj):
        for path, container in shape.containers():
            words = words_of(container)
            if _OLD_LAUNCHER in words:
                yield Advice(
                    "OldLauncher",
                    f"{path}.command",
                    f"{_OLD_LAUNCHER} has been superseded and will go away",
                    "write torchrun, and read LOCAL_RANK from the environment",
                )
            nodes = next((found[1] for word in words if (found := _NODES.match(word))), "1")
            meets = shape.annotations.get(RENDEZVOUS) == "true" or any(word.startswith(_MEETING) for word in words)
            if nodes != "1" and not meets and "torchrun" in words:
                yield Advice(
                    "NoRendezvous",
                    f"{path}.command",
                    f"torchrun is to start {nodes} nodes and is not told where they meet: each waits for the others on "
                    "its own",
                    f"give --rdzv_endpoint=HOST:PORT; {_RENDEZVOUS}",
                )


def unset_variables(obj: Obj, _: Around) -> Iterator[Advice]:
    """`$(NAME)` in a command is replaced by a variable of the container, and stays as it is where there is none."""
    for shape in shapes(obj):
        for path, container in shape.containers():
            if container.get("envFrom"):
                continue
            known = {str(one.get("name")) for one in maps(container.get("env"))}
            for field in ("command", "args"):
                for at, word in enumerate(texts(container.get(field))):
                    for name in _VARIABLE.findall(word):
                        if name not in known and "\n" not in word:
                            yield _unset(obj, f"{path}.{field}[{at}]", name)


def _unset(obj: Obj, path: str, name: str) -> Advice:
    what = f"nothing sets {name}: the program gets the text $({name})"
    fix = f"add {name} to env"
    if obj.get("kind") == "Job" and name == "POD_INDEX":
        fix = "write completionMode: Indexed with completions, and $(JOB_COMPLETION_INDEX)"
    return Advice("UnsetVariable", path, what, fix)


def masters(obj: Obj, around: Around) -> Iterator[Advice]:
    """A bare name can only be reached as a Service."""
    namespace = str(dig(obj, "metadata", "namespace") or "")
    told: set[str] = set()
    for shape in shapes(obj):
        for path, container in shape.containers():
            for at, one in enumerate(maps(container.get("env"))):
                host = one.get("value")
                if one.get("name") != "MASTER_ADDR" or not isinstance(host, str) or not _is_bare(host) or host in told:
                    continue
                if around.lacks(SERVICES, namespace, host):
                    told.add(host)
                    yield Advice(
                        "NoSuchService",
                        f"{path}.env[{at}]",
                        f"MASTER_ADDR is {host}, and there is no Service of that name in {namespace}",
                        f"make a headless Service, or {_RENDEZVOUS}",
                    )


def _is_bare(host: str) -> bool:
    return bool(re.fullmatch(r"[a-z][a-z0-9-]*", host)) and host != "localhost"


def visible_devices(obj: Obj, _: Around) -> Iterator[Advice]:
    """Which GPUs a container sees is the device plugin's to say."""
    for shape in shapes(obj):
        for path, container in shape.containers():
            for at, one in enumerate(maps(container.get("env"))):
                name, value = one.get("name"), str(one.get("value") or "")
                if name == "NVIDIA_VISIBLE_DEVICES" and value not in ("", "none", "void"):
                    what = f"{value} can show the container GPUs of the node that were given to others"
                    yield Advice("VisibleDevicesByHand", f"{path}.env[{at}]", f"{name}={what}", "leave it out")
                if name == "CUDA_VISIBLE_DEVICES" and value and gpus_of(container):
                    what = f"{value} picks among the GPUs that the container is given, numbered from 0 anyway"
                    yield Advice("VisibleDevicesByHand", f"{path}.env[{at}]", f"{name}={what}", "leave it out")


def idle_gpus(obj: Obj, _: Around) -> Iterator[Advice]:
    """One process uses one GPU."""
    for shape in shapes(obj):
        for path, container in shape.containers():
            gpus, words = gpus_of(container), words_of(container)
            if gpus > 1 and not any(launcher in " ".join(words) for launcher in _LAUNCHERS):
                yield Advice(
                    "NoLauncher",
                    f"{path}.command",
                    f"{gpus} GPUs and no launcher in the command: one process would use one of them, unless the image "
                    "starts more",
                    f"start it with torchrun --nproc_per_node={gpus}",
                )


def mpi(obj: Obj, _: Around) -> Iterator[Advice]:
    """What mpirun in a container as root, with a topology file for its workers, needs to be told."""
    files: list[str] = []
    for shape in shapes(obj):
        files += [
            str(mount.get("mountPath"))
            for _, container in shape.containers()
            for mount in maps(container.get("volumeMounts"))
            if str(mount.get("mountPath")).endswith(".xml")
        ]
    for shape in shapes(obj):
        for path, container in shape.containers():
            words = words_of(container)
            if "mpirun" not in words:
                continue
            if "--allow-run-as-root" not in words and dig(shape.spec, "securityContext", "runAsUser") is None:
                what = "mpirun refuses to run as root, which images run as unless they say otherwise"
                yield Advice("RootLauncher", f"{path}.command", what, "add --allow-run-as-root")
            if files and not any(word.startswith("NCCL_TOPO_FILE") for word in words):
                what = f"{files[0]} is mounted and NCCL is not told of it"
                yield Advice("TopologyNotPassed", f"{path}.command", what, f"add -x NCCL_TOPO_FILE={files[0]}")


def missing_volumes(obj: Obj, around: Around) -> Iterator[Advice]:
    """Of kinds whose pods somebody else makes."""
    namespace = str(dig(obj, "metadata", "namespace") or "")
    told: set[tuple[str, str]] = set()
    for shape in shapes(obj):
        for at, volume in enumerate(maps(shape.spec.get("volumes"))):
            here = f"{shape.path}.volumes[{at}]"
            config, claim = dig(volume, "configMap", "name"), dig(volume, "persistentVolumeClaim", "claimName")
            for kind, name in ((CONFIG_MAPS, config), (VOLUME_CLAIMS, claim)):
                if isinstance(name, str) and (kind.name, name) not in told and around.lacks(kind, namespace, name):
                    told.add((kind.name, name))
                    what = f"there is no {kind.name} {name} in {namespace}: its pods would wait"
                    yield Advice(f"Missing{kind.name}", here, what, "create it")


def dead_images(obj: Obj, _: Around) -> Iterator[Advice]:
    """Names under which nobody publishes anything; no registry is asked."""
    for shape in shapes(obj):
        for path, container in shape.containers():
            image = str(container.get("image") or "")
            fix = DEAD_IMAGES.get(image.partition(":")[0].removeprefix("docker.io/"), "")
            short = _SHORT_CUDA.fullmatch(image)
            if short:
                fix = f"tags have three numbers: {image.partition(':')[0]}:{short[1]}.0-{short[2]}"
            if fix:
                yield Advice("NoSuchImage", f"{path}.image", f"{image} is not published", fix)


def restricted(obj: Obj, around: Around) -> Iterator[Advice]:
    """Of kinds whose pods somebody else makes: the namespace would refuse them later, where few look."""
    namespace = str(dig(obj, "metadata", "namespace") or "")
    labels = named(dig(around.find(NAMESPACES, "", namespace), "metadata", "labels"))
    if labels.get("pod-security.kubernetes.io/enforce") != "restricted":
        return
    for shape in shapes(obj):
        everywhere = dig(shape.spec, "securityContext", "runAsNonRoot") is True
        for path, container in shape.containers():
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
