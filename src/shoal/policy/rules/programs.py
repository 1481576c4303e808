"""Checks Dockerfiles and training scripts for mistakes that show only on a GPU node: work that is lost at a preemption,
processes that share one GPU, drivers in images.

Scripts are parsed and never run. Only what a script does itself is seen. A script that imports a framework, which may
do the rest, is not said to lack anything.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from shoal.policy.declarations import Change, ProgramFinding, Rule, program_check
from shoal.policy.rules.serving import SECRET_ENDINGS

_SAVES: Final = ("save_checkpoint", "save_pretrained", "save_state", "async_save", "save", "save_model", "dump")
_LOADS: Final = ("load_checkpoint", "load_state_dict", "load_state", "from_pretrained", "restore", "resume", "load")
_FRAMEWORKS: Final = (
    "lightning",
    "pytorch_lightning",
    "transformers",
    "composer",
    "nemo",
    "colossalai",
    "ray",
    "keras",
)
"""They write checkpoints themselves, or are configured to."""
_DRIVERS: Final = ("cuda-drivers", "nvidia-driver-", "nvidia-headless-")
_DRIVER_FILE: Final = "NVIDIA-Linux-"
_OF_PROCESSES: Final = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
_REMOTE: Final = ("s3://", "gs://", "az://", "abfs://", "hf://")


def program_findings(name: str, text: str) -> Iterator[ProgramFinding]:
    """Of a file with this name, which tells what it is."""
    return script_findings(text) if name.endswith(".py") else dockerfile_findings(text)


@program_check(
    Rule(
        "SHL-956",
        "DriverInImage",
        "error",
        fault="an image contains libraries of a driver",
        effect="CUDA reports that driver and library versions do not match",
        fix="leave the driver out: the container toolkit mounts the libraries of the node's driver",
        file="Dockerfile",
        bad="""\
FROM nvcr.io/nvidia/pytorch:25.01-py3
RUN apt-get install -y nvidia-driver-550 curl
""",
        changes=(Change("nvidia-driver-550 ", ""),),
    ),
    Rule(
        "SHL-957",
        "ShellForm",
        "info",
        fault="a shell starts the program of an image",
        effect="the program is killed without having written a checkpoint",
        fix="write the command as a list",
        links=("https://docs.docker.com/reference/dockerfile/#cmd",),
        file="Dockerfile",
        bad="""\
FROM nvcr.io/nvidia/pytorch:25.01-py3
CMD torchrun /train.py
""",
        changes=(Change("torchrun /train.py", '["torchrun", "/train.py"]'),),
    ),
    also={
        "UnpinnedImage": "an image has no version",
        "VisibleDevicesByHand": "NVIDIA_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES is set",
        "PlainSecret": "an image contains a secret",
    },
)
def dockerfile_findings(text: str) -> Iterator[ProgramFinding]:
    """Instructions may go on over several lines; a finding has the line where the text is."""
    stages = {"scratch"}
    instruction = ""
    for number, written in enumerate(text.splitlines(), 1):
        line = written.strip()
        if not line or line.startswith("#"):
            continue
        begins = not instruction
        word = line.partition(" ")[0].upper() if begins else instruction
        instruction = word if line.endswith("\\") else ""
        column = written.index(line) + 1
        match word:
            case "FROM" if begins:
                yield from _base_image(line.split(), number, column, stages)
            case "ENV" | "ARG":
                yield from _variables(line, number, column)
            case "RUN":
                driver = next((word for word in line.split() if word.startswith(_DRIVERS) or _DRIVER_FILE in word), "")
                if driver:
                    what = f"{driver} puts libraries of a driver into the image, which hide those of the node"
                    fix = "leave the driver out: the container toolkit mounts the libraries of the node's driver"
                    yield ProgramFinding("DriverInImage", number, column, what, fix)
            case "CMD" | "ENTRYPOINT" if begins and not line.partition(" ")[2].lstrip().startswith("["):
                what = (
                    "a shell starts the program and does not pass SIGTERM on: it cannot save its work at a preemption"
                )
                yield ProgramFinding("ShellForm", number, column, what, f'write {word} ["program", "argument"]')


def _base_image(words: list[str], number: int, column: int, stages: set[str]) -> Iterator[ProgramFinding]:
    names = [word for word in words[1:] if not word.startswith("--")]
    image = names[0] if names else ""
    if image and image not in stages and "$" not in image and "@" not in image:
        tag = image.rpartition("/")[2].partition(":")[2]
        if tag in ("", "latest"):
            what = f"{image} can be another image tomorrow, so runs cannot be repeated"
            yield ProgramFinding("UnpinnedImage", number, column, what, "name a version or a digest")
    if len(names) > 2 and names[1].upper() == "AS":
        stages.add(names[2])


def _variables(line: str, number: int, column: int) -> Iterator[ProgramFinding]:
    if "CUDA_VISIBLE_DEVICES" in line:
        what = "the image selects GPUs, which the device plugin does for each container"
        yield ProgramFinding("VisibleDevicesByHand", number, column, what, "leave CUDA_VISIBLE_DEVICES out")
    words = line.split()
    if words[0].upper() == "ENV" and len(words) == 3 and "=" not in words[1]:
        words = [f"{words[1]}={words[2]}"]
    for word in words:
        name, _, value = word.partition("=")
        if name.endswith(SECRET_ENDINGS) and value.strip("\"'\\") and "$" not in value:
            what = f"everyone who can pull the image reads {name}"
            yield ProgramFinding("PlainSecret", number, column, what, "use a Secret of the pod, or a build secret")


@program_check(
    Rule(
        "SHL-951",
        "NoCheckpoint",
        "warning",
        fault="a training script writes no checkpoint",
        effect="a preempted or failed pod loses all of its work",
        fix="write model, optimizer and step at intervals, and read them at the start",
        links=("https://docs.pytorch.org/docs/stable/distributed.checkpoint.html",),
        file="train.py",
        bad="""\
import torch

model = torch.nn.Linear(1, 1)
for batch in range(10):
    model(torch.ones(1)).backward()
""",
        changes=(
            Change(
                """\
import torch
""",
                """\
import os

import torch
""",
            ),
            Change(
                "for batch",
                """if os.path.exists("/checkpoints/last.pt"):
    model.load_state_dict(torch.load("/checkpoints/last.pt"))
for batch""",
            ),
            Change(
                """\
.backward()
""",
                """\
.backward()
    torch.save(model.state_dict(), "/checkpoints/last.pt")
""",
            ),
        ),
    ),
    Rule(
        "SHL-952",
        "NoResume",
        "warning",
        fault="a training script writes checkpoints and reads none",
        effect="a restarted pod begins from zero",
        fix="load the newest checkpoint before the first step",
        links=("https://docs.pytorch.org/docs/stable/distributed.checkpoint.html",),
        file="train.py",
        bad="""\
import torch

model = torch.nn.Linear(1, 1)
for batch in range(10):
    model(torch.ones(1)).backward()
    torch.save(model.state_dict(), "/checkpoints/last.pt")
""",
        changes=(
            Change(
                "for batch",
                """model.load_state_dict(torch.load("/checkpoints/last.pt"))
for batch""",
            ),
        ),
    ),
    Rule(
        "SHL-953",
        "RankAsDevice",
        "error",
        fault="a script chooses its GPU by the rank among all processes",
        effect="the processes of all nodes but the first end with an invalid device",
        fix="use LOCAL_RANK, which torchrun sets",
        links=("https://docs.pytorch.org/docs/stable/elastic/run.html",),
        file="train.py",
        bad="""\
import os

import torch

torch.cuda.set_device(int(os.environ["RANK"]))
""",
        changes=(Change('"RANK"', '"LOCAL_RANK"'),),
    ),
    Rule(
        "SHL-954",
        "FixedRank",
        "error",
        fault="a script has a fixed rank or world size",
        effect="the processes do not find each other",
        fix="leave rank and world_size out: torchrun and the operators set RANK and WORLD_SIZE",
        links=("https://docs.pytorch.org/docs/stable/elastic/run.html",),
        file="train.py",
        bad="""\
import torch.distributed as dist

dist.init_process_group("nccl", rank=0, world_size=2)
""",
        changes=(Change(", rank=0, world_size=2", ""),),
    ),
    Rule(
        "SHL-955",
        "RemotePath",
        "error",
        fault="torch.save gets an address of an object store",
        effect="the checkpoint is lost with the container",
        fix="write to a volume, or use torch.distributed.checkpoint with a writer for the object store",
        file="train.py",
        bad="""\
import torch

torch.save({}, "s3://bucket/last.pt")
""",
        changes=(Change("s3://bucket", "/checkpoints"),),
    ),
)
def script_findings(text: str) -> Iterator[ProgramFinding]:
    """Nothing for a script that is no Python, or does not use PyTorch."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    modules = {name for node in ast.walk(tree) for name in _imported(node)}
    if "torch" not in modules:
        return
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {_name(call.func) for call in calls}
    yield from _lost_work(calls, names, modules)
    aliases = _ranks(tree)
    guarded = _guarded(tree)
    if "init_process_group" in names:
        yield from _assigned(tree, guarded)
    for call in calls:
        yield from _device(call, aliases)
        if call not in guarded:
            yield from _group(call)
        yield from _remote(call)


def _lost_work(calls: list[ast.Call], names: set[str], modules: set[str]) -> Iterator[ProgramFinding]:
    step = next((call for call in calls if _name(call.func) == "backward"), None)
    if step is None or modules & set(_FRAMEWORKS):
        return
    place = step.lineno, step.col_offset + 1
    if not names & set(_SAVES):
        what = "the script trains and writes no checkpoint: a preempted or failed pod starts from zero"
        fix = "write model, optimizer and step with torch.distributed.checkpoint, and read them at the start"
        yield ProgramFinding("NoCheckpoint", *place, what, fix)
    elif not names & set(_LOADS):
        what = "the script writes checkpoints and reads none: a restarted pod begins from zero and replaces them"
        yield ProgramFinding("NoResume", *place, what, "load the newest checkpoint before the first step")


def _device(call: ast.Call, aliases: set[str]) -> Iterator[ProgramFinding]:
    """The rank counts all processes, and the devices of a container are numbered from 0 on each node."""
    if _name(call.func) != "set_device" or not call.args:
        return
    argument = call.args[0]
    is_rank = any(
        (isinstance(node, ast.Constant) and node.value == "RANK")
        or (isinstance(node, ast.Call) and _name(node.func) == "get_rank")
        or (isinstance(node, ast.Name) and node.id in aliases)
        for node in ast.walk(argument)
    )
    if is_rank and not any(isinstance(node, ast.Mod) for node in ast.walk(argument)):
        what = "the device is chosen by RANK, which is beyond the GPUs of the container on every node but the first"
        yield ProgramFinding(
            "RankAsDevice", call.lineno, call.col_offset + 1, what, "use LOCAL_RANK, which torchrun sets"
        )


def _ranks(tree: ast.AST) -> set[str]:
    """The names to which RANK is assigned."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(
            (isinstance(inner, ast.Constant) and inner.value == "RANK")
            or (isinstance(inner, ast.Call) and _name(inner.func) == "get_rank")
            for inner in ast.walk(node.value)
        ):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def _group(call: ast.Call) -> Iterator[ProgramFinding]:
    if _name(call.func) != "init_process_group":
        return
    fixed = {
        each.arg for each in call.keywords if isinstance(each.value, ast.Constant) and each.value.value is not None
    }
    if {"rank", "world_size"} & fixed:
        what = "rank and world size are fixed, so that every process takes itself for the same one"
        fix = "leave them out: torchrun and the operators set RANK and WORLD_SIZE"
        yield ProgramFinding("FixedRank", call.lineno, call.col_offset + 1, what, fix)


def _guarded(tree: ast.Module) -> set[ast.AST]:
    """What runs only under a condition or after an error, such as for a run without torchrun."""
    found: set[ast.AST] = set()
    below: list[tuple[ast.AST, bool]] = [(tree, False)]
    while below:
        node, is_guarded = below.pop()
        if is_guarded:
            found.add(node)
        is_guarded = is_guarded or isinstance(node, ast.ExceptHandler) or (isinstance(node, ast.If) and _asks(node))
        below += [(inner, is_guarded) for inner in ast.iter_child_nodes(node)]
    return found


def _asks(condition: ast.If) -> bool:
    """`if __name__ == "__main__"` holds in every run of a program."""
    return not any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(condition.test))


def _assigned(tree: ast.Module, guarded: set[ast.AST]) -> Iterator[ProgramFinding]:
    """`os.environ["RANK"] = "0"`, unless it is guarded."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or node in guarded or not isinstance(node.value, ast.Constant):
            continue
        for target in node.targets:
            if isinstance(target, ast.Subscript) and _is_environment(target.value):
                name = target.slice.value if isinstance(target.slice, ast.Constant) else None
                if name in _OF_PROCESSES:
                    what = f"{name} is fixed, so that every process takes itself for the same one"
                    fix = "leave it out: torchrun and the operators set RANK, WORLD_SIZE and LOCAL_RANK"
                    yield ProgramFinding("FixedRank", node.lineno, node.col_offset + 1, what, fix)


def _is_environment(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "environ"


def _remote(call: ast.Call) -> Iterator[ProgramFinding]:
    if _name(call.func) != "save" or len(call.args) < 2 or not _is_of_torch(call.func):
        return
    for node in ast.walk(call.args[1]):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(_REMOTE):
            what = "torch.save writes files of the container only, so that the address is taken for a folder"
            fix = "write to a volume, or use torch.distributed.checkpoint with a writer for the object store"
            yield ProgramFinding("RemotePath", call.lineno, call.col_offset + 1, what, fix)
            return


def _is_of_torch(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "torch"


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (each.name.partition(".")[0] for each in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module.partition(".")[0]


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
