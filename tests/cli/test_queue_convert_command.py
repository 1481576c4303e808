"""`shoal queue convert`: YAML on standard output, what is lost on standard error, and each way to be wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.gpu_queues import gpu_queue, gpus
from build.manifests import as_file
from shoal.api.files import read_manifests
from shoal.cli.main import main
from shoal.cli.queue_conversion import converted

KAI = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "k"}, "spec": {}}


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["queue", "convert", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_objects_are_written_and_warnings_kept_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = as_file(tmp_path, *gpu_queue("team-a", gpus(4)), name="queues.json")
    code, out, err = run(capsys, "--to", "volcano", "-f", file)
    assert (code, "warning: the scheduler of Volcano needs the plugin capacity" in err) == (0, True)
    assert "warning" not in out
    written = tmp_path / "volcano.yaml"
    written.write_text(out)
    again = converted(read_manifests([str(written)]), "kueue", "team", "volcano.yaml")
    kinds = [str(each["kind"]) for each in again.objects]
    assert kinds == ["ResourceFlavor", "ClusterQueue", "LocalQueue"]


@pytest.mark.parametrize(
    ("objects", "options", "words"),
    [
        (gpu_queue("q", gpus(1)), ["--to", "kueue"], "the queues are those of kueue already"),
        (gpu_queue("q", gpus(1)), ["--to", "volcan"], "volcan"),
        ([*gpu_queue("q", gpus(1)), KAI], ["--to", "volcano"], "queues of kueue and kai found"),
        ([], ["--to", "kai"], "no queues of Kueue, KAI or Volcano found"),
    ],
)
def test_wrong_input_is_said(
    objects: list[Any], options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = as_file(tmp_path, *objects, name="queues.json")
    code, out, err = run(capsys, *options, "-f", file)
    assert (code, out) == (2, "")
    assert words in err


def test_without_files_the_flag_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "--to", "kai")
    assert (code, "--filename" in err) == (2, True)
