"""What the page of the embedded cluster says of controllers, pods, stages and faults is what the code does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
import yaml

from docs.pages import ROOT, code, prose
from shoal.cli.embedded_options import DEFAULT_NODES
from shoal.cli.main import app
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.embedded.controllers.node_lifecycle.heartbeats import GRACE_S
from shoal.embedded.gpus.node_gpus import Use
from shoal.embedded.kubelets import pod_annotations as wishes
from shoal.embedded.kubelets.durations import seconds_of
from shoal.embedded.kubelets.faults import FAULT, GPU_FAULTS, FaultKind
from shoal.embedded.kubelets.settings import FleetSettings
from shoal.embedded.kubelets.stage_files import read_stage, read_stages
from shoal.embedded.machines.fleet_spec import read_fleet
from shoal.units.errors import UserError
from shoal.wiring.controllers import CONTROLLERS

PAGE = ROOT / "docs" / "cluster.md"
TEXT = PAGE.read_text(encoding="utf-8")
WIRING = ROOT / "src" / "shoal" / "wiring"
PAIRS = ROOT / "tests" / "embedded" / "kubelets" / "pairs"
UNREADABLE = "never!"
FREE_TEXT = {"log", "devices"}


def _rows(heading: str) -> list[list[str]]:
    lines = TEXT[TEXT.index(heading) :].splitlines()[2:]
    table = lines[: next(at for at, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def _names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_the_table_of_controllers_names_each_once() -> None:
    own = re.findall(r'^        "([a-z-]+)": \(', (WIRING / "controllers.py").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(own) >= 3
    named = [name for row in _rows("| controller | does |") for name in _names(row[0])]
    assert sorted(named) == sorted([*CONTROLLERS, *own])


def test_the_annotations_of_stages_and_no_others_are_in_the_table() -> None:
    named = [_names(row[0])[0] for row in _rows("| annotation | means |")]
    assert all(name.startswith(wishes.PREFIX) for name in named)
    short = {name.removeprefix(wishes.PREFIX) for name in named}
    stages = read_stages().by_name.values()
    asked = {stage.after.annotation for stage in stages} | {stage.next.code_from for stage in stages}
    assert asked - {""} <= short
    told = {name for name in short if list(wishes.complaints({wishes.PREFIX + name: UNREADABLE}, ()))}
    assert told == short - FREE_TEXT


@pytest.mark.parametrize("row", _rows("| annotation | means |"), ids=lambda row: str(row[0].strip("`")))
def test_the_examples_of_annotations_can_be_read(row: list[str]) -> None:
    name = _names(row[0])[0]
    values = [value.strip('"') for value in _names(row[3])]
    assert values
    assert [list(wishes.complaints({name: value}, ())) for value in values] == [[] for _ in values]


def test_the_defaults_of_annotations_are_those_of_the_code() -> None:
    defaults = {_names(row[0])[0].removeprefix(wishes.PREFIX): row[2] for row in _rows("| annotation | means |")}
    stages = read_stages().by_name
    for stage, name in (("job-work", "run-for"), ("init-work", "init-for"), ("container-stop", "stop-after")):
        assert defaults[name].startswith(f"{stages[stage].after.wait_s:g} s")
    assert defaults["gpu-util"] == f"{100 * Use().util:g}"


def test_the_states_and_verbs_of_stages_are_those_of_the_language() -> None:
    for subject, states, verbs in _rows("| of | states | verbs |"):
        of = _names(subject)[0]
        for wrong, right in (("state", _names(states)), ("verb", _names(verbs))):
            found = {"state": _names(states)[0], "verb": _names(verbs)[0]} | {wrong: "none-such"}
            with pytest.raises(UserError) as refused:
                read_stage(_stage(of, found["state"], found["verb"]), "stage.yaml")
            said = re.split(r"one of |there are ", str(refused.value))[-1]
            assert said.split(", ") == right


def _stage(of: str, state: str, verb: str) -> str:
    return f"{{name: x, of: {of}, when: {{state: {state}}}, next: {{verb: {verb}}}}}"


def test_the_stage_on_the_page_is_one_and_its_error_is_the_one_shown() -> None:
    (text,) = (block for block in _blocks("yaml") if block.startswith("# flaky/crash.yaml"))
    assert read_stage(text, "flaky/crash.yaml").after.jitter_s == seconds_of("5s")
    with pytest.raises(UserError) as refused:
        read_stage(text.replace("{state: running", "{state: runing"), "flaky/crash.yaml")
    assert f"shoal: {refused.value}\n" in TEXT


def test_the_pair_on_the_page_is_the_shipped_one() -> None:
    shown = [block for block in _blocks("yaml") if "untilS:" in block]
    assert shown == [(PAIRS / "container-unhealthy.input.yaml").read_text(encoding="utf-8")]


def _commands() -> dict[str, Any]:
    cluster = typer.main.get_command(app).commands["cluster"]  # type: ignore[attr-defined]
    commands: dict[str, Any] = cluster.commands
    return commands


def test_the_table_of_faults_has_every_command_that_breaks_something() -> None:
    named = {re.match(r"shoal cluster ([a-z-]+)", _names(row[0])[0])[1] for row in _rows("| command | what happens |")}  # type: ignore[index]
    assert named == _commands().keys() - {"nodes", "controllers", "heal", "status", "reset"}
    assert set(get_args(FaultKind)) <= named
    assert f"`{FAULT}`" in prose(PAGE)
    assert f"`{GPU_FAULTS}`" in prose(PAGE)


def test_the_times_of_faults_are_those_of_the_code() -> None:
    rows = {_names(row[0])[0].split()[2]: row[1] for row in _rows("| command | what happens |")}
    settings = FleetSettings()
    assert f"NotReady after {GRACE_S:g} s" in rows["fail"]
    assert f"{settings.reboot_s:g} s" in rows["reboot"]
    assert settings.spot_notice_s == 120
    assert "two minutes later" in rows["spot-interrupt"]


def test_every_fleet_on_the_page_can_be_read() -> None:
    shown = re.findall(r"--nodes '?([^\s'`]+)", TEXT)
    fleets = [one for one in shown if one != "none" and not one.endswith(".yaml")]
    assert len(fleets) >= 2
    assert all(read_fleet(one) for one in fleets)
    assert f"`{DEFAULT_NODES}`" in prose(PAGE)


def test_the_number_of_foreign_kinds_is_about_right() -> None:
    assert "some seventy kinds" in " ".join(prose(PAGE).split())
    assert 65 <= sum(1 for _ in definitions()) < 85


def test_the_scrape_configuration_is_yaml() -> None:
    (text,) = (block for block in _blocks("yaml") if block.startswith("scrape_configs"))
    (job,) = yaml.safe_load(text)["scrape_configs"]
    assert job["http_sd_configs"][0]["url"].endswith("/sd")


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples" / "cluster").iterdir()))
def test_examples_that_are_named_exist(name: str) -> None:
    pages = [page.read_text(encoding="utf-8") for page in (PAGE, ROOT / "README.md")]
    shown = set(re.findall(r"examples/cluster/([\w-]+\.yaml)", "\n".join(pages)))
    assert "training.yaml" in shown
    assert (ROOT / "examples" / "cluster" / name).read_text(encoding="utf-8").startswith("# ")
    assert all((ROOT / "examples" / "cluster" / one).exists() for one in shown)


def test_the_page_shows_no_output_of_another_version() -> None:
    assert {*re.findall(r"v1\.\d+\.\d+", code(PAGE))} == {"v1.36.0"}


@pytest.mark.parametrize(
    "folder", ["client", "controllers", "embedded", "embedded/controllers", "embedded/kubelets", "telemetry", "wiring"]
)
def test_the_maps_of_the_living_cluster_name_every_file_and_folder(folder: str) -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    plan = text[text.index(f"\n{folder}/\n") + len(folder) + 3 :]
    ends = re.search(r"^(?:\S|```)", plan, re.MULTILINE)
    assert ends is not None
    named = set(re.findall(r"[a-z_]+(?:\.py|/)", plan[: ends.start()]))
    there = _there(ROOT / "src" / "shoal" / folder)
    assert named == there


def _there(folder: Path) -> set[str]:
    files = {path.name for path in folder.glob("*.py")} - {"__init__.py"}
    return files | {f"{path.name}/" for path in folder.iterdir() if path.is_dir() and path.name != "__pycache__"}
