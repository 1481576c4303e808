"""The loop around a training step: it goes on where it was, saves in time, and leaves when it is told to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from shoal.train import Checkpoints, Progress, Training, reporter_of
from shoal.train.progress import FileReporter, ProgressAnnotator, Reporter, Silence


class Script:
    """A training script whose state is one number, and its clock."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.environment = environment
        self.seen: list[int] = []
        self.loaded: list[str] = []
        self.told: list[Progress] = []
        self.now_s = 1_767_225_600.0
        self.step = 0

    def training(self, every_s: float = 100.0) -> Training:
        return Training(
            self.folder,
            save=lambda folder: (folder / "state").write_text(str(self.step)),
            load=self.load,
            every_s=every_s,
            environment=self.environment,
            reporter=self,
            clock=lambda: self.now_s,
            pause=lambda _: None,
        )

    def load(self, folder: Path) -> None:
        self.step = int((folder / "state").read_text())
        self.loaded.append(folder.name)

    def tell(self, progress: Progress) -> None:
        self.told.append(progress)

    def close(self) -> None:
        """Nothing is open."""

    def run(self, stop: int, *, every_s: float = 100.0, end_at: int | None = None) -> list[int]:
        seen = []
        with self.training(every_s) as training:
            for step in training.steps(stop):
                seen.append(step)
                self.step = step + 1
                self.now_s += 10
                if step == end_at:
                    training.stop()
        return seen


def test_a_run_goes_through_all_steps_and_saves_the_last(tmp_path: Path) -> None:
    assert Script(tmp_path).run(5) == [0, 1, 2, 3, 4]
    assert [entry.name for entry in tmp_path.iterdir()] == ["step-000000000005"]


def test_whoever_is_told_to_end_saves_and_the_next_run_goes_on_from_there(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        Script(tmp_path).run(10, end_at=3)
    assert ended.value.code == 143
    second = Script(tmp_path)
    assert second.run(10) == [4, 5, 6, 7, 8, 9]
    assert second.loaded == ["step-000000000004"]


def test_work_is_saved_as_often_as_was_asked(tmp_path: Path) -> None:
    script = Script(tmp_path)
    with script.training(every_s=30) as training:
        for step in training.steps(100):
            script.step = step + 1
            script.now_s += 10
            if step == 7:
                break
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["step-000000000003", "step-000000000006"]


def test_a_checkpoint_that_cannot_be_loaded_is_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Script(tmp_path).run(4, every_s=0)
    (tmp_path / "step-000000000004" / "state").write_text("?")
    script = Script(tmp_path)
    assert script.run(5)[0] == 3
    assert "step-000000000004 cannot be loaded" in capsys.readouterr().err


class Ranks:
    """Several ranks in threads: each says whether, and hears whether any said so."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.count = count
        self.barrier = threading.Barrier(count, timeout=120)
        self.said = [False] * count

    def agree(self, rank: int, mine: bool) -> bool:
        self.said[rank] = mine
        self.barrier.wait()
        found = any(self.said)
        self.barrier.wait()
        return found

    def resumed(self, broken: dict[int, set[str]]) -> list[int | str]:
        """Where each rank goes on, or why it does not. `broken`: folders that a rank cannot load."""

        def resume(rank: int) -> int | str:
            def load(folder: Path) -> None:
                if folder.name in broken.get(rank, ()):
                    raise OSError("a bad disk")

            environment = {"RANK": str(rank), "WORLD_SIZE": str(self.count)}
            agree = partial(self.agree, rank)
            try:
                return Training(self.folder, save=load, load=load, environment=environment, agree=agree).resume()
            except RuntimeError as error:
                return str(error)

        with ThreadPoolExecutor(self.count) as pool:
            return list(pool.map(resume, range(self.count)))


def saved(folder: Path, *steps: int) -> None:
    for step in steps:
        Checkpoints(folder).save(step, lambda made: (made / "state").write_text("x"))


def test_a_checkpoint_that_one_rank_cannot_load_is_passed_over_by_all(tmp_path: Path) -> None:
    saved(tmp_path, 100, 200, 300)
    assert Ranks(tmp_path, 3).resumed({1: {"step-000000000300"}, 2: {"step-000000000200"}}) == [100, 100, 100]


def test_ranks_that_have_no_checkpoint_in_common_say_so_where_something_was_loaded(tmp_path: Path) -> None:
    saved(tmp_path, 100)
    found = Ranks(tmp_path, 2).resumed({1: {"step-000000000100"}})
    assert found == [f"no checkpoint in {tmp_path} can be loaded by every rank", 0]


def test_a_rank_that_cannot_ask_the_others_ends_rather_than_going_on_from_elsewhere(tmp_path: Path) -> None:
    saved(tmp_path, 100, 200)

    def load(folder: Path) -> None:
        raise OSError("a bad disk")

    training = Training(tmp_path, save=load, load=load, environment={"RANK": "3", "WORLD_SIZE": "8"})
    with pytest.raises(RuntimeError, match=r"rank 3 cannot load .*step-000000000200.*init_process_group"):
        training.resume()


def test_how_far_it_is_and_when_it_was_saved_is_told(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.run(4, every_s=0)
    assert script.told[0] == Progress(0, 4, None)
    assert script.told[-1].annotations() == {
        "shoal.dev/progress": "4/4",
        "shoal.dev/last-checkpoint": "2026-01-01T00:00:40Z",
        "shoal.dev/step-time": "10000.000ms",
    }


def test_a_script_that_marks_its_communication_reports_which_part_of_the_steps_it_is(tmp_path: Path) -> None:
    script = Script(tmp_path)
    with script.training(0) as training:
        for _ in training.steps(2):
            script.now_s += 6
            with training.communicating():
                script.now_s += 2
    assert script.told[-1].annotations()["shoal.dev/step-time"] == "8000.000ms"
    assert script.told[-1].annotations()["shoal.dev/network-share"] == "0.250"


@pytest.mark.parametrize(
    ("environment", "reports"),
    [
        pytest.param({"RANK": "3", "WORLD_SIZE": "4"}, True, id="the only process of a later pod reports"),
        pytest.param({"RANK": "8", "WORLD_SIZE": "16", "LOCAL_RANK": "0"}, True, id="the first of a later pod does"),
        pytest.param({"RANK": "9", "WORLD_SIZE": "16", "LOCAL_RANK": "1"}, False, id="the second of a pod does not"),
    ],
)
def test_one_process_of_each_pod_reports(tmp_path: Path, environment: dict[str, str], reports: bool) -> None:
    cluster = {"KUBERNETES_SERVICE_HOST": "h", "POD_NAME": "p", "POD_NAMESPACE": "n"}
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("t")
    training = Training(
        tmp_path / "saved",
        save=lambda _: None,
        load=lambda _: None,
        environment={**cluster, **environment},
        account=account,
    )
    with training:
        assert isinstance(training.reporter, ProgressAnnotator if reports else Silence)


def test_only_the_first_rank_writes_the_file_that_all_ranks_share(tmp_path: Path) -> None:
    shared = {"SHOAL_PROGRESS_FILE": str(tmp_path / "progress"), "WORLD_SIZE": "2"}

    def reporter(rank: str) -> Reporter:
        environment = {**shared, "RANK": rank}
        return Training(tmp_path, save=lambda _: None, load=lambda _: None, environment=environment).reporter

    assert isinstance(reporter("0"), FileReporter)
    assert isinstance(reporter("1"), Silence)


def test_a_rank_that_is_no_number_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="RANK must be a whole number, got 'first'"):
        Script(tmp_path, RANK="first").training()


def test_progress_goes_to_a_file_where_one_is_named(tmp_path: Path) -> None:
    reporter = reporter_of({"SHOAL_PROGRESS_FILE": str(tmp_path / "progress")})
    reporter.tell(Progress(3, None, 0.0))
    found = json.loads((tmp_path / "progress").read_text())
    assert found == {"shoal.dev/progress": "3", "shoal.dev/last-checkpoint": "1970-01-01T00:00:00Z"}


def test_outside_of_a_pod_nobody_is_told() -> None:
    assert isinstance(reporter_of({"POD_NAME": "x"}), Silence)


SCRIPT = """
import sys, time
from pathlib import Path
from shoal.train import Training
state = {"step": 0}
def save(folder): (folder / "state").write_text(str(state["step"]))
def load(folder): state["step"] = int((folder / "state").read_text())
with Training(sys.argv[1], save=save, load=load, every_s=3600) as training:
    for step in training.steps(int(sys.argv[2])):
        state["step"] = step + 1
        print(step, flush=True)
        if step >= int(sys.argv[3]):
            sys.stdin.readline()
"""


@pytest.mark.slow
def test_a_real_process_that_gets_sigterm_loses_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [*command, "100", "6"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as first:
        assert first.stdout is not None
        assert first.stdin is not None
        for line in first.stdout:
            if line.strip() == "6":
                break
        first.send_signal(signal.SIGTERM)
        first.stdin.write("\n")
        first.stdin.flush()
        assert first.wait(30) == 143
    second = subprocess.run(
        [*command, "10", "100"], capture_output=True, text=True, env=environment, timeout=120, check=True
    )
    assert second.stdout.split() == ["7", "8", "9"]


def test_the_module_imports_nothing_but_python() -> None:
    code = "import sys, shoal.train; print([n for n in ('torch', 'numpy', 'msgspec', 'aiohttp') if n in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert found.stdout.strip() == "[]"
