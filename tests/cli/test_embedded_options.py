"""Who lives beside the server, as the command line says it and says it again to another process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.cli.embedded_options import EmbeddedOptions, Scheduler
from shoal.cli.main import main
from shoal.cli.up import UpOptions
from shoal.units.errors import UserError
from shoal.wiring.cluster_clock import ClockReading
from shoal.wiring.controllers import CONTROLLERS, DEFAULT_SCHEDULER
from shoal.wiring.run_choice import OWN_NAMES


def test_a_newcomer_gets_two_gpu_nodes_and_all_controllers() -> None:
    options = EmbeddedOptions().to_cluster_options()
    assert [machine.name for machine in options.machines] == ["p5-48xlarge-0", "p5-48xlarge-1"]
    assert set(CONTROLLERS) - set(options.controllers) == {DEFAULT_SCHEDULER}
    assert options.shoal is not None
    assert options.shoal.own.scheduler_names == OWN_NAMES


def test_whoever_asks_for_the_simple_scheduler_has_it_alone() -> None:
    options = EmbeddedOptions(scheduler=Scheduler.SIMPLE).to_cluster_options()
    assert (options.controllers, options.shoal) == (tuple(CONTROLLERS), None)


def test_without_controllers_nobody_places_pods() -> None:
    options = EmbeddedOptions(has_controllers=False).to_cluster_options()
    assert (options.controllers, options.shoal) == ((), None)


def test_none_is_no_nodes() -> None:
    assert EmbeddedOptions(nodes="none").to_cluster_options().machines == ()
    assert len(EmbeddedOptions(nodes="2xcpu-64").to_cluster_options().machines) == 2


def test_a_detached_server_is_told_the_same_with_files_it_can_find(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    choice = EmbeddedOptions(nodes="2xp5.48xlarge,lab.yaml", has_controllers=False, speed=60, stages=(Path("own"),))
    assert choice.arguments() == [
        "--nodes",
        f"2xp5.48xlarge,{tmp_path}/lab.yaml",
        "--speed",
        "60",
        "--no-controllers",
        "--stages",
        f"{tmp_path}/own",
    ]


def test_a_detached_server_finds_the_socket_of_the_container_runtime(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for written, passed_on in (("unix://own.sock", f"{tmp_path}/own.sock"), ("none", "none")):
        choice = EmbeddedOptions(is_this_machine=True, runtime_endpoint=written)
        assert choice.arguments()[-3:] == ["--this-machine", "--runtime-endpoint", passed_on]


def test_a_container_runtime_that_is_not_there_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = ["--state", str(tmp_path / "state")]
    assert main(["up", *state, "--this-machine", "--runtime-endpoint", str(tmp_path / "none.sock")]) == 2
    assert f"--runtime-endpoint: {tmp_path}/none.sock does not exist" in capsys.readouterr().err
    assert main(["up", *state, "--runtime-endpoint", "none"]) == 2
    assert "--runtime-endpoint is only for --this-machine" in capsys.readouterr().err


def test_a_configuration_of_gpus_that_cannot_be_used_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    state, bad = ["--state", str(tmp_path / "state")], tmp_path / "bad.yaml"
    bad.write_text("version: v2\n")
    assert main(["up", *state, "--this-machine", "--gpu-config", str(bad)]) == 2
    assert f"{bad}: unknown version: v2" in capsys.readouterr().err
    assert main(["join", *state, "--gpu-config", str(tmp_path / "none")]) == 2
    assert f"{tmp_path}/none: there is no such file or folder; correct --gpu-config" in capsys.readouterr().err
    assert main(["up", *state, "--gpu-config", str(bad)]) == 2
    assert "--gpu-config is only for --this-machine" in capsys.readouterr().err

    monkeypatch.chdir(tmp_path)
    choice = EmbeddedOptions(is_this_machine=True, gpu_config=Path("bad.yaml"))
    assert choice.arguments()[-2:] == ["--gpu-config", str(bad)]


def test_what_is_switched_off_stays_off_in_every_process(tmp_path: Path) -> None:
    choice = EmbeddedOptions(has_contention=False, has_foreign=False, metrics_port=0)
    assert choice.arguments()[-3:] == ["--metrics-port", "0", "--no-contention"]
    assert "--no-foreign-kinds" in choice.arguments()
    assert (choice.to_cluster_options().has_contention, choice.to_cluster_options().has_foreign) == (False, False)
    split = msgspec.structs.replace(choice, is_split=True).to_cluster_options(tmp_path / "kubeconfig")
    assert not split.has_foreign
    assert ["--no-contention" in command for command in split.children] == [False, False, True]


def test_a_split_cluster_has_its_clients_in_three_processes(tmp_path: Path) -> None:
    options = EmbeddedOptions(is_split=True, speed=2).to_cluster_options(tmp_path / "kubeconfig")
    assert (options.machines, options.controllers) == ((), ())
    assert options.shoal is None
    controllers, shoal, nodes = options.children
    assert (controllers[:2], controllers[-2:]) == (("cluster", "controllers"), ("--scheduler", "shoal"))
    assert shoal[:3] == ("run", "--no-leader-elect", "--child")
    assert nodes[:2] == ("cluster", "nodes")
    assert all("--speed" in command and str(tmp_path / "kubeconfig") in command for command in options.children)


def test_a_split_cluster_with_the_simple_scheduler_has_two(tmp_path: Path) -> None:
    options = EmbeddedOptions(is_split=True, scheduler=Scheduler.SIMPLE).to_cluster_options(tmp_path / "kubeconfig")
    assert [command[:2] for command in options.children] == [("cluster", "controllers"), ("cluster", "nodes")]
    assert options.children[0][-2:] == ("--scheduler", "simple")


def test_a_split_cluster_finds_out_about_a_wrong_fleet_before_it_starts(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="p5\\.48xlarge"):
        EmbeddedOptions(is_split=True, nodes="p5.48xlrge").to_cluster_options(tmp_path / "kubeconfig")


def test_a_moment_survives_the_command_line() -> None:
    moment = ClockReading(1_700_000_000.125, 1_800_000_000.5)
    assert ClockReading.read(str(moment)) == moment


def test_the_demonstration_says_what_does_not_go_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--demo", "--nodes", "1xp5.48xlarge"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("shoal: --nodes does not go with --demo; ")
    assert err.count("\n") == 1


def test_a_fleet_that_is_given_in_several_options_has_the_machines_of_all() -> None:
    assert (
        UpOptions(nodes=["2xp5.48xlarge", "1xg5.xlarge,lab.yaml"]).embedded().nodes
        == "2xp5.48xlarge,1xg5.xlarge,lab.yaml"
    )
    assert UpOptions().embedded().nodes == "2xp5.48xlarge"


@pytest.mark.parametrize("command", [["up"], ["cluster", "nodes", "--kubeconfig", "/nowhere"]])
def test_the_first_of_several_fleets_is_read_too(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--nodes", "2xp5.48xlrge", "--nodes", "1xp5.48xlarge"]) == 2
    assert "p5.48xlrge" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["up"], ["cluster", "nodes", "--kubeconfig", "/nowhere"]])
def test_an_unknown_machine_is_one_line_with_the_nearest_names(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--nodes", "2xp5.48xlrge"]) == 2
    err = capsys.readouterr().err
    assert "p5.48xlarge" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("address", ["nowhere", "::"])
def test_nodes_call_an_address_their_own_that_others_can_ask(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["cluster", "nodes", "--kubeconfig", "/nowhere", "--kubelet-address", address]
    assert main(command) == 2
    err = capsys.readouterr().err
    assert "--kubelet-address" in err
    assert address in err
    assert err.count("\n") == 1


def snapshot(folder: Path, *names: str) -> Path:
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {}} for name in names]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "t"}, "spec": {"containers": []}}
    path = folder / "snapshot.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, pod]}))
    return path


def test_the_nodes_of_a_snapshot_are_beside_those_of_the_command_line(tmp_path: Path) -> None:
    choice = EmbeddedOptions(nodes="p5.48xlarge[name=new]", snapshot=snapshot(tmp_path, "a", "b"))
    found = choice.to_cluster_options()
    assert [machine.name for machine in found.machines] == ["a", "b", "new-0"]
    assert found.snapshot is not None
    assert found.snapshot.source == "snapshot.json"
    assert choice.arguments()[-2:] == ["--from", str(tmp_path / "snapshot.json")]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nodes": "p5.48xlarge[name=a]"}, "two nodes are called a-0"),
        ({"is_split": True}, "--processes does not go with --from"),
        ({"has_foreign": False}, "--no-foreign-kinds does not go with --from"),
    ],
)
def test_options_that_a_snapshot_excludes_are_one_line(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words):
        EmbeddedOptions(**{"nodes": "none", "snapshot": snapshot(tmp_path, "a-0"), **options}).to_cluster_options()


def test_a_snapshot_without_nodes_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no Node"):
        EmbeddedOptions(nodes="none", snapshot=snapshot(tmp_path)).to_cluster_options()


def test_the_mode_of_the_admission_rules_reaches_shoal_and_a_detached_server() -> None:
    choice = EmbeddedOptions(admission_rules="enforce")
    assert choice.arguments()[-2:] == ["--admission-rules", "enforce"]
    shoal = choice.to_cluster_options().shoal
    assert shoal is not None
    modes = shoal.rule_modes()
    assert modes is not None
    assert modes.default == "enforce"
    assert EmbeddedOptions().to_cluster_options().shoal != shoal


@pytest.mark.parametrize("choice", [EmbeddedOptions(admission_rules="warn", has_controllers=False)])
def test_admission_rules_need_the_controllers_of_shoal(choice: EmbeddedOptions) -> None:
    with pytest.raises(UserError, match="--admission-rules needs Shoal's controllers"):
        choice.to_cluster_options()
