"""`shoal why -f` prints the warnings that belong to the question, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.gpu_queues import gpu_job
from build.manifests import Object, as_file, node, pod, thing, volcano_group
from shoal.cli.main import main

GROUP = "scheduling.k8s.io/group-name"


def local_queue(name: str, cluster_queue: str) -> Object:
    return thing("kueue.x-k8s.io/v1beta2", "LocalQueue", name, spec={"clusterQueue": cluster_queue})


def world() -> list[Object]:
    """A group without pods, one with too few, two queues without a ClusterQueue, a job in each, and a plain pod."""
    return [
        node("n", 4),
        thing("v1", "ConfigMap", "c"),
        volcano_group("t/empty", 1),
        volcano_group("t/short", 3),
        pod("t/member", 1, annotations={GROUP: "short"}),
        local_queue("t/q", "absent"),
        local_queue("u/q", "absent"),
        gpu_job("t/late", 1, 1),
        gpu_job("u/late", 1, 1),
        pod("t/plain", 8),
    ]


@pytest.mark.parametrize(
    ("name", "objects"),
    [
        ("pod/t/plain", []),
        ("pod/t/member", ["PodGroup t/short"]),
        ("gang/t/short", ["PodGroup t/short"]),
        ("job/t/late", ["LocalQueue t/q"]),
    ],
)
def test_warnings_are_those_about_the_object_its_gang_and_its_queue(
    name: str, objects: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why", name, "-f", as_file(tmp_path, *world())]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("(")[2].partition(")")[0] for line in lines] == objects


def test_without_such_an_object_all_warnings_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "pod/t/palin", "-f", as_file(tmp_path, *world())]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert "did you mean" in lines[-1]
    assert any("not read, because no decision depends on them: ConfigMap" in line for line in lines)
    assert any("PodGroup t/empty" in line for line in lines)
