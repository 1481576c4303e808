"""`shoal run` refuses what cannot be meant: one line with file and field, exit code 2, before anybody is asked."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs

from shoal.api.run_configuration import LeaderElectionRules, RunConfiguration
from shoal.cli.main import main
from shoal.cli.run import _CONTROLLERS, _NAMED, _with_lease, run_choice, start_line
from shoal.cli.run_files import RunFiles, read_run_files
from shoal.wiring.shoal import NAMED, PARTS

_KUBECONFIG = """apiVersion: v1
kind: Config
current-context: production
contexts: [{name: production, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""
AT = "run.yaml: document 1 (ShoalConfiguration): "
OWN = "apiVersion: config.shoal.dev/v1alpha1\nkind: ShoalConfiguration\n"
KUEUE = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
KUBE = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

FILES: dict[str, tuple[str, str]] = {
    "a field that nobody knows": (f"{OWN}schedulerName: [batch]\n", "schedulerName: unknown field"),
    "a field of Kueue's that nobody knows": (
        f"{KUEUE}waitForPodsReadyy: {{}}\n",
        "(Configuration): waitForPodsReadyy: unknown field; did you mean waitForPodsReady?",
    ),
    "a field deep in Kueue's": (
        f"{KUEUE}resources: {{transformations: [{{inptu: a}}]}}\n",
        "resources.transformations[0]",
    ),
    "a policy that nobody knows": (
        f"{OWN}policy: Shaol\n",
        f'{AT}policy: policy "Shaol" not found; did you mean Shoal?',
    ),
    "a part that nobody knows": (
        f"{OWN}controllers: [queues, schedulr]\n",
        f'{AT}controllers[1]: controller "schedulr" not found; did you mean scheduler?',
    ),
    "victims that nobody knows": (
        f"{OWN}preemption: {{victims: nobody}}\n",
        'preemption.victims: unsupported value "nobody"; supported values are ',
    ),
    "no scheduler": (f"{OWN}schedulerNames: []\n", "schedulerNames: names at least one scheduler; the usual one is"),
    "a lease that cannot be kept": (
        f"{OWN}leaderElection: {{leaseDuration: 3s}}\n",
        "leaderElection: leaseDuration > renewDeadline > 1.2 x retryPeriod > 0 must hold; as in 7s, 5s and 1s",
    ),
    "another version": (OWN.replace("v1alpha1", "v2"), "supported values are config.shoal.dev/v1alpha1"),
    "the same kind twice": (f"{OWN}---\n{OWN}", "is defined twice; keep one of them"),
    "what is no configuration": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
        'is not a configuration that "shoal run" reads',
    ),
    "what is no YAML": ("kind: [\n", "line 2, column 1"),
    "two profiles of one name": (
        f"{KUBE}profiles: [{{schedulerName: a}}, {{schedulerName: a}}]\n",
        'profiles[1].schedulerName: duplicate value "a"',
    ),
}


@pytest.mark.parametrize("case", FILES.values(), ids=FILES)
def test_a_file_that_cannot_be_meant_is_one_line(
    case: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, words = case
    file = tmp_path / "run.yaml"
    file.write_text(text)
    assert main(["run", "--kubeconfig", "/nowhere", "--config", str(file)]) == 2
    told = [line for line in capsys.readouterr().err.splitlines() if "warning" not in line]
    assert len(told) == 1
    assert told[0].startswith("shoal: ")
    assert words in told[0]


OPTIONS: dict[str, tuple[list[str], str]] = {
    "a part": (
        ["--controllers", "schedulr"],
        '--controllers: controller "schedulr" not found; did you mean',
    ),
    "no part": (["--controllers", ","], "choose among scheduler, queues, "),
    "a scheduler without name": (["--scheduler-name", ""], "names at least one scheduler"),
    "a file that is not there": (["--config", "/none.yaml"], "/none.yaml: cannot be read: No such file or directory"),
    "an option": (["--scheduler-nam", "x"], "--scheduler-name"),
    "a kubeconfig": ([], "/nowhere: cannot be read: No such file or directory"),
}


@pytest.mark.parametrize("case", OPTIONS.values(), ids=OPTIONS)
def test_an_option_that_cannot_be_meant_is_one_line(
    case: tuple[list[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    options, words = case
    assert main(["run", "--kubeconfig", "/nowhere", *options]) == 2
    told = capsys.readouterr().err
    assert told.startswith("shoal: ")
    assert words in told
    assert told.count("\n") == 1


def test_the_command_line_knows_every_part() -> None:
    assert _CONTROLLERS == PARTS
    assert _NAMED == NAMED


def test_node_scaling_needs_a_cloud_and_a_cloud_the_name_of_the_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--kubeconfig", "/nowhere", "--controllers", "node-scaling"]) == 2
    assert (
        "--cloud: node-scaling needs a cloud; aws, cluster-api and external-grpc are supported"
        in capsys.readouterr().err
    )
    assert main(["run", "--kubeconfig", "/nowhere", "--controllers", "node-scaling", "--cloud", "aws"]) == 2
    assert "--cloud-cluster: the instances of the cluster need its name as a tag" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cluster-api"], "--cloud-cluster: Cluster API needs the Cluster whose machines are scaled"),
        (["cluster-api", "--cloud-cluster", "training"], "as in --cloud-cluster default/training"),
        (["cluster-api", "--cloud-cluster", "default/training", "--cloud-kubeconfig", "/nowhere"], "/nowhere"),
        (["external-grpc"], "--cloud-config: the provider's address is missing"),
        (["external-grpc", "--cloud-config", "/nowhere"], "/nowhere cannot be read: No such file or directory"),
        (["aws", "--cloud-config", "/nowhere"], "only the cloud external-grpc has this file"),
        (["aws", "--cloud-kubeconfig", "/nowhere"], "only the cloud cluster-api has a management cluster"),
    ],
)
def test_each_cloud_needs_its_own_options_and_no_others(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["run", "--kubeconfig", "/nowhere", "--controllers", "node-scaling", "--cloud", *arguments]
    assert main(given) == 2
    assert words in capsys.readouterr().err


def test_everything_runs_unless_somebody_chooses() -> None:
    assert run_choice(RunFiles()).controllers == PARTS
    assert run_choice(RunFiles(RunConfiguration(controllers=("queues",)))).controllers == ("queues",)


def test_the_start_names_the_parts_the_pods_and_the_lease() -> None:
    assert start_line(run_choice(RunFiles())) == (
        "starting scheduler, queues, jobs, pods, gatekeeper, advisor, tenants, volcano, kai in all namespaces; "
        "places pods with schedulerName shoal or volcano or kai-scheduler; changes the cluster while it holds the "
        "Lease kube-system/shoal"
    )


def test_a_start_without_scheduler_and_lease_names_neither() -> None:
    own = RunConfiguration(controllers=("queues", "jobs"), leader_election=LeaderElectionRules(leader_elect=False))
    line = start_line(run_choice(RunFiles(own)))
    assert line == "starting queues, jobs in all namespaces; changes the cluster without leader election"


def test_the_lines_before_the_first_answer_say_which_cluster_and_what_starts(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(_KUBECONFIG)
    command = [sys.executable, "-m", "shoal", "run", "--kubeconfig", str(kubeconfig), "--metrics-address", "none"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        first, second = process.stderr.readline(), process.stderr.readline()
        process.terminate()
    assert first == "cluster: production (https://127.0.0.1:1, from --kubeconfig)\n"
    assert second.startswith("starting scheduler, queues, ")


def test_two_processes_on_one_machine_are_told_apart() -> None:
    assert run_choice(RunFiles()).identity != run_choice(RunFiles()).identity


def test_a_profile_of_kube_scheduler_says_whose_pods_are_placed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(f"{KUBE}profiles: [{{schedulerName: gpu-scheduler}}]\n")
    choice = run_choice(read_run_files([file]))
    assert choice.own.scheduler_names == ("gpu-scheduler",)
    warned = capsys.readouterr().err
    # In a living cluster volumes and claims are looked at, and pods do yield.
    assert not any(word in warned for word in ("VolumeBinding", "DynamicResources", "DefaultPreemption"))


TWO = f"""{KUBE}profiles:
- schedulerName: packs
  pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{{matchExpressions: [{{key: pool, operator: In, values: [a]}}]}}]
- schedulerName: spreads
"""


def test_all_profiles_of_a_file_are_served_each_by_its_own_name(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(TWO)
    choice = run_choice(read_run_files([file]))
    assert choice.own.scheduler_names == ("packs", "spreads")
    assert [one.scheduler_name for one in choice.profiles] == ["packs", "spreads"]
    assert [one.added is not None for one in choice.profiles] == [True, False]
    assert choice.builder == choice.profiles[0].builder


def test_only_the_profiles_that_somebody_names_are_served(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(f"{TWO}---\n{OWN}schedulerNames: [spreads]\n")
    choice = run_choice(read_run_files([file]))
    assert choice.own.scheduler_names == ("spreads",)
    assert [one.scheduler_name for one in choice.profiles] == ["spreads"]


def test_a_name_without_a_profile_is_served_by_the_first_and_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(f"{TWO}---\n{OWN}schedulerNames: [other, spreads]\n")
    choice = run_choice(read_run_files([file]))
    assert choice.own.scheduler_names == ("other", "spreads")
    assert [one.scheduler_name for one in choice.profiles] == ["spreads"]
    assert "profile other not found: its pods are placed by profile spreads" in capsys.readouterr().err


LEASES = {
    "the operator alone has its own": (("operator",), "shoal", "shoal-operator"),
    "the recorder alone has its own": (("history",), "shoal", "shoal-history"),
    "beside other parts it shares theirs": (("operator", "advisor"), "shoal", "shoal"),
    "the name of a file is kept": (("operator",), "mine", "mine"),
    "the usual parts": ((), "shoal", "shoal"),
}


@pytest.mark.parametrize("case", LEASES)
def test_the_name_of_the_lease(case: str) -> None:
    controllers, name, expected = LEASES[case]
    own = RunConfiguration(controllers=controllers, leader_election=LeaderElectionRules(resource_name=name))
    assert _with_lease(own).leader_election.resource_name == expected


def test_the_part_history_needs_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--controllers", "history"]) == 2
    line = "--controllers: the part history has no folder; name one with --history DIR"
    assert line in capsys.readouterr().err


def test_a_process_that_only_records_says_that_it_changes_nothing() -> None:
    own = _with_lease(RunConfiguration(controllers=("history",)))
    choice = structs.replace(run_choice(RunFiles()), own=own, controllers=("history",))
    assert start_line(choice) == (
        "starting history in all namespaces; only reads the cluster, and records while it holds the Lease "
        "kube-system/shoal-history"
    )


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--web-proxy", "10.0.0.1"], "--web-proxy: needs an address of the pages; give --web-address"),
        (["--web-address", "8090"], "--web-address: is not an address; write HOST:PORT"),
        (["--web-address", "127.0.0.1:0", "--web-tls-cert-file", "a"], "--web-tls-key-file: is missing; give"),
        (["--web-address", "127.0.0.1:0", "--web-proxy", "front"], '--web-proxy: "front" is neither an address nor'),
    ],
)
def test_pages_that_cannot_be_served_are_refused_before_the_start(
    tmp_path: Path, words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config").write_text(_KUBECONFIG)
    assert main(["run", "--kubeconfig", str(tmp_path / "config"), "--context", "production", *words]) == 2
    assert error in capsys.readouterr().err


def test_a_port_of_the_pages_that_is_in_use_is_named_before_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config").write_text(_KUBECONFIG)
    with socket.create_server(("127.0.0.1", 0)) as used:
        address = f"127.0.0.1:{used.getsockname()[1]}"
        words = ["--kubeconfig", str(tmp_path / "config"), "--context", "production", "--web-address", address]
        assert main(["run", *words]) == 2
    assert f"--web-address: cannot listen on {address}: Address already in use" in capsys.readouterr().err
