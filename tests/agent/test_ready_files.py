"""The files that mark the working layers of a node, and the waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from shoal.agent.validator.layers import LayerResult, State
from shoal.agent.validator.ready_files import WAIT_S, WATCH_S, ReadyFiles, validate_repeatedly, wait_for_files
from shoal.cli.main import main
from shoal.units.errors import UserError


def _results(**states: State) -> list[LayerResult]:
    return [LayerResult(layer, state, "") for layer, state in states.items()]


def test_each_wanted_layer_that_works_has_a_file(tmp_path: Path) -> None:
    ReadyFiles(tmp_path).take(_results(driver="passed", toolkit="skipped", plugin="passed"), ["driver", "toolkit"])
    assert sorted(one.name for one in tmp_path.iterdir()) == ["driver-ready", "toolkit-ready"]


def test_a_layer_that_fails_loses_its_file_and_so_do_those_above_it(tmp_path: Path) -> None:
    files = ReadyFiles(tmp_path)
    files.take(_results(driver="passed", toolkit="passed", plugin="passed"), ["driver", "toolkit", "plugin"])
    files.take(_results(driver="passed", toolkit="failed", plugin="skipped"), ["driver", "toolkit", "plugin"])
    assert [layer for layer in ("driver", "toolkit", "plugin") if files.has(layer)] == ["driver"]


def test_the_file_of_the_driver_says_where_it_is(tmp_path: Path) -> None:
    ReadyFiles(tmp_path).take(_results(driver="passed"), ["driver"])
    lines = (tmp_path / "driver-ready").read_text().splitlines()
    assert lines == [
        "IS_HOST_DRIVER=true",
        "NVIDIA_DRIVER_ROOT=/",
        "DRIVER_ROOT_CTR_PATH=/host",
        "NVIDIA_DEV_ROOT=/",
        "DEV_ROOT_CTR_PATH=/host",
    ]
    (tmp_path / "driver-ready").unlink()
    (tmp_path / ".driver-ctr-ready").touch()
    ReadyFiles(tmp_path, "/opt/driver").take(_results(driver="passed"), ["driver"])
    lines = (tmp_path / "driver-ready").read_text().splitlines()
    assert lines[:3] == [
        "IS_HOST_DRIVER=false",
        "NVIDIA_DRIVER_ROOT=/opt/driver",
        "DRIVER_ROOT_CTR_PATH=/driver-root",
    ]


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="gone/driver-ready: cannot be written: No such file"):
        ReadyFiles(tmp_path / "gone").take(_results(driver="passed"), ["driver"])


def test_the_wait_ends_when_another_process_has_written_the_file(tmp_path: Path) -> None:
    files, pauses, told = ReadyFiles(tmp_path), [], list[str]()

    def pause(seconds: float) -> bool:
        pauses.append(seconds)
        if len(pauses) == 2:
            files.take(_results(toolkit="passed"), ["toolkit"])
        return False

    assert wait_for_files(["toolkit"], files, pause, told.append)
    assert (pauses, told) == ([WAIT_S, WAIT_S], ["waiting for the validation of toolkit"])


def test_the_wait_ends_with_the_process(tmp_path: Path) -> None:
    assert not wait_for_files(["toolkit"], ReadyFiles(tmp_path), lambda _: True, lambda _: None)


def _repeated(runs: list[list[LayerResult]], pauses: int, *, is_endless: bool) -> tuple[bool, list[float], int]:
    slept: list[float] = []
    shown: list[Sequence[LayerResult]] = []

    def pause(seconds: float) -> bool:
        slept.append(seconds)
        return len(slept) > pauses

    is_good = validate_repeatedly(
        lambda: runs.pop(0) if len(runs) > 1 else runs[0], lambda _: None, pause, shown.append, is_endless=is_endless
    )
    return is_good, slept, len(shown)


def test_a_layer_is_tested_until_it_works() -> None:
    runs = [_results(driver="failed"), _results(driver="failed"), _results(driver="passed")]
    assert _repeated(runs, 9, is_endless=False) == (True, [WAIT_S, WAIT_S], 2)


def test_a_watch_goes_on_and_tests_more_often_after_a_failure() -> None:
    runs = [_results(driver="passed"), _results(driver="failed"), _results(driver="passed")]
    assert _repeated(runs, 3, is_endless=True) == (True, [WATCH_S, WAIT_S, WATCH_S, WATCH_S], 3)


def test_the_command_marks_the_layers_of_a_simulated_machine(tmp_path: Path) -> None:
    options = ["--fake", "dgx-h100", "--layers", "driver,toolkit", "--wait", "--ready-dir", str(tmp_path)]
    assert main(["agent", "validate", *options]) == 0
    assert main(["agent", "validate", "--wait-for", "driver,toolkit", "--ready-dir", str(tmp_path)]) == 0


def test_a_wait_needs_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "validate", "--wait-for", "driver"]) == 2
    assert "--wait-for: needs a folder; name it with --ready-dir" in capsys.readouterr().err
