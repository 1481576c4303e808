"""Machines described in a file: fields, and errors that name file, line and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.embedded.machines.fleet_spec import read_fleet
from shoal.embedded.machines.profiles import read_profiles
from shoal.units.errors import UserError

LAB = """
machines:
  - name: lab
    count: 2
    gpu: A100-SXM4-80GB
    gpus: 4
    islands: "0-1,2-3"
    numa: "0+2,1+3"
    cpu: 64
    memory: 512Gi
    timeSlicing: 4
    labels: {team: vision}
    taints: [{key: team, value: vision, effect: NoSchedule}]
  - like: p5.48xlarge
    mig: all-1g.10gb
    spot: true
"""


def written(folder: Path, text: str) -> str:
    path = folder / "lab.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_machine_has_the_gpu_software_that_its_field_says(tmp_path: Path) -> None:
    text = "machines: [{like: p5.48xlarge, gpuSoftware: driver}, {like: p5.48xlarge}]"
    assert [one.gpu_software for one in read_profiles(written(tmp_path, text))] == ["driver", "included"]


def test_a_machine_is_what_its_fields_say(tmp_path: Path) -> None:
    lab, twin, cloud = read_profiles(written(tmp_path, LAB))
    assert [lab.name, twin.name, cloud.name] == ["lab-0", "lab-1", "p5-48xlarge-0"]
    assert [gpu.island for gpu in lab.gpus] == [0, 0, 1, 1]
    assert [gpu.numa for gpu in lab.gpus] == [0, 1, 0, 1]
    assert lab.labels["team"] == "vision"
    assert lab.capacity["memory"] == f"{512 * 2**20}Ki"
    assert lab.sharing is not None
    assert lab.sharing.replicas == 4
    assert lab.taints[0]["effect"] == "NoSchedule"
    assert (cloud.mig_config, cloud.is_spot, len(cloud.gpus)) == ("all-1g.10gb", True, 8)


def test_a_file_is_an_entry_of_a_fleet(tmp_path: Path) -> None:
    path = written(tmp_path, LAB)
    assert [one.name for one in read_fleet(f"p5.48xlarge,{path}")] == [
        "p5-48xlarge-0",
        "lab-0",
        "lab-1",
        "p5-48xlarge-1",
    ]


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("{like: p5.48xlarg}", 'line 3: machines[0].like: "p5.48xlarg" is not a machine'),
        ("{like: p5.48xlarge, gpuz: 3}", "line 3: machines[0].gpuz: no such field; did you mean gpu"),
        ("{like: p5.48xlarge, count: many}", "machines[0].count: Expected `int`"),
        ("{like: p5.48xlarge, count: 0}", "machines[0].count: 0 machines"),
        ("{name: a, cpu: 4}", "what kind of machine this is stays open"),
        ("{name: a, cpu: 4, memory: much}", "machines[0].memory"),
        (
            "{name: a, cpu: 4, memory: 8Gi, gpu: A1000}",
            'machines[0].gpu: "A1000" is not a GPU model; did you mean A10',
        ),
        ("{name: a, cpu: 4, memory: 8Gi, gpus: 2}", "the GPU is not named"),
        ("{like: p5.48xlarge, gpus: 99}", "at most 16"),
        ("{like: p5.48xlarge, islands: '0-3'}", "not every one of the 8 GPUs is in a group"),
        ("{like: p5.48xlarge, mig: all-1g.5gb}", "possible: all-disabled"),
        ("{like: p5.48xlarge, gpuSoftware: some}", 'unknown GPU software "some"'),
        ("{like: p5.48xlarge, mps: 2, timeSlicing: 2}", "exclude each other"),
        ("{like: p5.48xlarge, strategy: both}", "machines[0].strategy"),
        ("p5.48xlarge", "Expected `object`"),
    ],
)
def test_a_mistake_is_told_with_file_line_and_field(tmp_path: Path, entry: str, told: str) -> None:
    path = written(tmp_path, f"# own machines\nmachines:\n  - {entry}\n")
    with pytest.raises(UserError) as caught:
        read_profiles(path)
    assert told in str(caught.value)
    assert str(caught.value).startswith(path)


@pytest.mark.parametrize("text", ["", "[]", "machines: []", "machine: []", "machines: {a: 1}", "a: ["])
def test_a_file_without_machines_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError):
        read_profiles(written(tmp_path, text))
