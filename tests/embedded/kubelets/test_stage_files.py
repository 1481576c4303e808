"""Stage files: what is wrong is said with file, line and field; a user's file adds to or replaces the shipped ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.fleets import fleet_cluster, pod, statuses
from build.virtual_time import virtual
from shoal.client.kind import PODS
from shoal.embedded.kubelets.settings import FleetSettings
from shoal.embedded.kubelets.stage_files import read_stage, read_stages
from shoal.units.errors import UserError

_GOOD = """name: oom
of: container
when:
  state: running
  labels: {chaos: oom}
after: {wait: 5s}
next: {verb: exit, code: 137, reason: OOMKilled}
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (_GOOD.replace("state: running", "state: sleeping"), r"line 4: when\.state: a container is never 'sleeping'"),
        (_GOOD.replace("wait: 5s", "wait: soon"), r'line 6: after: "soon" is not a duration'),
        (
            _GOOD.replace("labels:", "lables:"),
            r"line 5: when\.lables: no such field; did you mean labels, roles, faults\?",
        ),
        (_GOOD + "delay: 5s\n", r"line 8: delay: no such field; such as name, of, when, next"),
        (
            _GOOD.replace("OOMKilled}", "OOMKilled, events: [{reason: A, message: b}, {reson: A, message: b}]}"),
            r"line 7: next\.events\[1\]\.reson: no such field; did you mean reason\?",
        ),
        (_GOOD.replace("code: 137", "code: 999"), r"line 7: next\.code: 999 is not a number from 0 to 255"),
        (_GOOD.replace("code: 137", "code: -1"), r"line 7: next\.code: -1 is not a number from 0 to 255"),
        (_GOOD.replace("code: 137", "code: many"), r"line 7: next\.code: Expected `int`, got `str`"),
        (
            _GOOD.replace("verb: exit", "verb: explode"),
            r"line 7: next\.verb: no verb 'explode' of a container; there are start, exit",
        ),
        (_GOOD.replace("name: oom\n", ""), "line 1: .*missing required field `name`"),
        (_GOOD.replace("{wait: 5s}", "{wait: 5s"), "line 7: not YAML"),
        ("", "line 1: Expected `object`, got `null`"),
    ],
)
def test_a_stage_that_cannot_be_read_is_told_with_file_line_and_field(text: str, words: str) -> None:
    with pytest.raises(UserError, match=f"^oom.yaml: .*(?:{words})"):
        read_stage(text, "oom.yaml")


def test_a_folder_that_is_not_there_is_told() -> None:
    with pytest.raises(UserError, match="folder not found"):
        read_stages([Path("/nowhere/stages")])


def test_a_folder_without_stages_is_told(tmp_path: Path) -> None:
    (tmp_path / "crash.yaml.txt").write_text(_GOOD)
    with pytest.raises(UserError, match="the folder has no stages"):
        read_stages([tmp_path])


@virtual
async def test_a_stage_of_the_users_own_ends_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "oom.yaml").write_text(_GOOD)
    async with fleet_cluster(tmp_path, settings=FleetSettings(stage_folders=(tmp_path / "own",))) as run:
        marked = pod("marked", restartPolicy="Never")
        marked["metadata"]["labels"] = {"chaos": "oom"}
        await run.cluster.create(PODS, marked)
        await run.cluster.create(PODS, pod("other"))
        failed = await run.until_phase("marked", "Failed", 10)
        assert statuses(failed)["main"]["state"]["terminated"]["reason"] == "OOMKilled"
        await run.cluster.pass_time(60)
        assert (await run.cluster.get(PODS, "other"))["status"]["phase"] == "Running"


def test_a_users_file_of_a_shipped_name_takes_its_place(tmp_path: Path) -> None:
    mine = "{name: job-work, of: container, when: {state: running}, after: {wait: 1h}, next: {verb: exit}}"
    (tmp_path / "mine.yaml").write_text(mine)
    stages = read_stages([tmp_path])
    assert stages.by_name["job-work"].after.wait_s == 3600
    assert len(stages.by_name) == len(read_stages().by_name)


@virtual
async def test_stages_that_run_in_a_circle_do_not_stop_the_fleet(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    circle = "{name: circle, of: health, when: {state: ready}, after: {wait: 0s}, next: {verb: started}}"
    (tmp_path / "own" / "circle.yaml").write_text(circle)
    async with fleet_cluster(tmp_path, settings=FleetSettings(stage_folders=(tmp_path / "own",))) as run:
        await run.cluster.create(PODS, pod(run_for="5s", restartPolicy="Never"))
        await run.until_phase("pod", "Succeeded", 30)
