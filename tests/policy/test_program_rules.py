"""Dockerfiles and training scripts: what would lose work or the GPUs on a node, and what is in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.api.plain_objects import read_plain_objects
from shoal.policy.catalogue import faults
from shoal.policy.lint import Checked, lint_files
from shoal.policy.object_set import ObjectSet
from shoal.policy.rules.programs import program_findings

DOCKERFILE = """\
# The image of the trainer.
FROM nvcr.io/nvidia/pytorch:25.01-py3 AS base
FROM base
ARG VERSION=1
ENV NCCL_DEBUG=WARN TOKENIZERS_PARALLELISM=false
RUN apt-get update && \\
    apt-get install -y curl
COPY train.py /
CMD ["torchrun", "/train.py"]
"""
SCRIPT = """\
import os
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = torch.nn.Linear(1, 1).cuda()
if os.path.exists("/ckpt/last.pt"):
    model.load_state_dict(torch.load("/ckpt/last.pt"))
for batch in range(10):
    model(batch).backward()
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), "/ckpt/last.pt")
"""
MISTAKES = [
    ("Dockerfile", ":25.01-py3", ":latest", "UnpinnedImage", 2),
    ("Dockerfile", "pytorch:25.01-py3", "pytorch", "UnpinnedImage", 2),
    ("Dockerfile", "NCCL_DEBUG=WARN", "NCCL_DEBUG=WARN HF_TOKEN=hf_x", "PlainSecret", 5),
    ("Dockerfile", "ENV NCCL_DEBUG=WARN TOKENIZERS_PARALLELISM=false", "ENV HF_TOKEN hf_x", "PlainSecret", 5),
    ("Dockerfile", "ENV NCCL_DEBUG=WARN", "ENV CUDA_VISIBLE_DEVICES=0", "VisibleDevicesByHand", 5),
    ("Dockerfile", "-y curl", "-y nvidia-driver-550", "DriverInImage", 7),
    ("Dockerfile", '["torchrun", "/train.py"]', "torchrun /train.py", "ShellForm", 9),
    ("train.py", '["LOCAL_RANK"]', '["RANK"]', "RankAsDevice", 6),
    ("train.py", 'int(os.environ["LOCAL_RANK"])', "dist.get_rank()", "RankAsDevice", 6),
    ("train.py", 'init_process_group("nccl")', 'init_process_group("nccl", rank=0, world_size=2)', "FixedRank", 5),
    ("train.py", '"/ckpt/last.pt")\n', '"s3://b/last.pt")\n', "RemotePath", 13),
    (
        "train.py",
        'dist.init_process_group("nccl")',
        'os.environ["RANK"] = "0"; dist.init_process_group("nccl")',
        "FixedRank",
        5,
    ),
    ("train.py", '        torch.save(model.state_dict(), "/ckpt/last.pt")', "        pass", "NoCheckpoint", 11),
    ("train.py", 'model.load_state_dict(torch.load("/ckpt/last.pt"))', "pass", "NoResume", 11),
]


def findings(name: str, text: str) -> list[tuple[str, int]]:
    return [(each.reason, each.line) for each in program_findings(name, text)]


@pytest.mark.parametrize(("name", "right", "wrong", "reason", "line"), MISTAKES)
def test_a_mistake_is_found_on_its_line(name: str, right: str, wrong: str, reason: str, line: int) -> None:
    text = DOCKERFILE if name == "Dockerfile" else SCRIPT
    assert right in text
    # The last place: a script also reads what it writes.
    changed = wrong.join(text.rsplit(right, 1))
    assert findings(name, changed) == [(reason, line)]


@pytest.mark.parametrize(("name", "text"), [("Dockerfile", DOCKERFILE), ("train.py", SCRIPT)])
def test_files_in_order_have_no_findings(name: str, text: str) -> None:
    assert findings(name, text) == []


@pytest.mark.parametrize(
    "text",
    [
        "this is no python (",
        "\x00",
        "(" * 5_000,
        "import os\nloss.backward()",
        "import torch\nimport transformers\nloss.backward()",
        "import torch\ntorch.cuda.set_device(dist.get_rank() % 8)",
        "",
    ],
)
def test_other_scripts_have_no_findings(text: str) -> None:
    assert findings("a.py", text) == []


def lint(folder: Path) -> Checked:
    return lint_files(read_plain_objects([str(folder)], (".py", "dockerfile")), ObjectSet([]), frozenset(faults()))


def test_a_comment_accepts_a_finding_in_a_script_and_in_a_dockerfile(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM x:latest\n")
    (tmp_path / "a.py").write_text("import torch\nloss.backward()\n")
    assert [(each.object, each.line) for each in lint(tmp_path).findings] == [
        ("Dockerfile Dockerfile", 1),
        ("Script a.py", 2),
    ]
    (tmp_path / "Dockerfile").write_text("# shoal-lint: ignore UnpinnedImage a trial\nFROM x:latest\n")
    (tmp_path / "a.py").write_text("import torch\nloss.backward()  # shoal-lint: ignore SHL-951 a trial\n")
    assert (lint(tmp_path).findings, lint(tmp_path).accepted) == ([], 2)


def test_a_rank_that_is_set_only_where_it_is_missing_is_accepted() -> None:
    text = (
        "import os\nimport torch.distributed as dist\n"
        'if "RANK" not in os.environ:\n    os.environ["RANK"] = "0"\n'
        'os.environ["NCCL_DEBUG"] = "INFO"\ndist.init_process_group("nccl")\n'
    )
    assert findings("train.py", text) == []


@pytest.mark.parametrize(
    "guard",
    [
        'try:\n    rank = os.environ["RANK"]\nexcept KeyError:\n',
        "if standalone:\n",
        'if "--local" in sys.argv:\n',
        "if os.cpu_count() == 1:\n    pass\nelse:\n",
    ],
)
def test_a_rank_that_is_set_under_a_condition_is_accepted(guard: str) -> None:
    body = '    os.environ["RANK"] = "0"\n    os.environ["WORLD_SIZE"] = "1"\n    dist.init_process_group(rank=0)\n'
    assert findings("train.py", f"import os, sys\nimport torch.distributed as dist\n{guard}{body}") == []


def test_the_condition_that_the_file_is_the_program_is_no_guard() -> None:
    text = 'import os, torch\nif __name__ == "__main__":\n    os.environ["RANK"] = "0"\n    init_process_group()\n'
    assert findings("train.py", text) == [("FixedRank", 3)]
