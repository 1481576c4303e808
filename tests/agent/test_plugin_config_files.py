"""The configuration of the device plugin changes while it runs: one file, or those of a folder by the Node's label."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.agent.plugin.config_files import ConfigFile, ConfigFolder, ConfigKeys
from shoal.devices.labelled_config import LabelledConfig, fallback_key
from shoal.devices.plugin_config import PluginConfig, parse_plugin_config

OWN = PluginConfig()
WRONG = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}\n"


def shared(replicas: int) -> str:
    return WRONG.replace("replicas: 1", f"replicas: {replicas}")


def parse(text: str) -> tuple[PluginConfig, tuple[str, ...]]:
    found = parse_plugin_config(text, "none")
    return found, found.notes


class Folder:
    """A mounted ConfigMap, and what was applied of it."""

    def __init__(self, path: Path, default: str = "", *, waits_for_label: bool = False) -> None:
        self.path = path
        self.applied: list[int] = []
        keys = ConfigKeys(default, ("named", "single"), waits_for_label=waits_for_label)
        self.config = ConfigFolder(path, LabelledConfig(OWN, parse), self._apply, keys)

    def _apply(self, config: PluginConfig) -> None:
        self.applied.append(config.replicas_of("nvidia.com/gpu"))

    def write(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.path / name).write_text(text)

    def check(self, label: str = "") -> list[int]:
        self.config.set_label(label)
        self.config.check()
        return self.applied


def test_the_label_chooses_a_file_and_a_changed_file_is_applied_once(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write(a100=shared(2), t4=shared(4))
    assert folder.check("t4") == [4]
    assert folder.check("t4") == [4]
    folder.write(t4=shared(8))
    assert folder.check("t4") == [4, 8]
    assert folder.check("a100") == [4, 8, 2]
    assert folder.check("") == [4, 8, 2, 1]


def test_no_file_is_chosen_before_the_label_is_known(tmp_path: Path) -> None:
    """Another configuration for a moment would withdraw devices that running pods have."""
    folder = Folder(tmp_path, waits_for_label=True)
    folder.write(default=shared(2), t4=shared(4))
    folder.config.check()
    assert (folder.applied, folder.config.is_chosen.is_set()) == ([], False)
    folder.config.set_label("t4")
    assert (folder.applied, folder.config.is_chosen.is_set()) == ([4], True)


def test_a_node_whose_label_is_known_to_be_absent_has_a_fallback(tmp_path: Path) -> None:
    folder = Folder(tmp_path, waits_for_label=True)
    folder.write(default=shared(2), t4=shared(4))
    folder.config.set_label("")
    assert (folder.applied, folder.config.is_chosen.is_set()) == ([2], True)


@pytest.mark.parametrize(
    ("text", "words"),
    [(WRONG, "number of replicas must be >= 2: nvidia.com/gpu"), (None, "no ConfigMap has the key; ")],
    ids=["a configuration with which the plugin does not start", "a key that no file has"],
)
def test_a_fault_keeps_the_previous_configuration_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str | None, words: str
) -> None:
    folder = Folder(tmp_path)
    folder.write(t4=shared(4), **({"wrong": text} if text else {}))
    folder.check("t4")
    folder.check("wrong")
    assert folder.check("wrong") == [4]
    assert sum(words in message for message in caplog.messages) == 1


def test_a_folder_that_cannot_be_read_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = Folder(tmp_path / "absent")
    assert folder.check("t4") == []
    assert folder.check("t4") == []
    assert sum("cannot be read" in message for message in caplog.messages) == 1


@pytest.mark.parametrize("fault", ["no text", "too large", "a link to nothing"])
def test_a_file_that_cannot_be_read_is_reported_once_and_the_others_apply(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    folder = Folder(tmp_path)
    folder.write(a100=shared(2), t4=shared(4))
    assert folder.check("t4") == [4]
    broken = tmp_path / "t4"
    broken.unlink()
    if fault == "a link to nothing":
        broken.symlink_to(tmp_path / "nowhere")
    else:
        broken.write_bytes(b"\xff\xfe" if fault == "no text" else b"#" * (2 << 20))
    assert folder.check("t4") == [4]
    assert folder.check("a100") == [4, 2]
    assert sum("t4" in message and "cannot be read" in message for message in caplog.messages) == 1
    broken.unlink()
    folder.write(t4=shared(8))
    assert folder.check("t4") == [4, 2, 8]


def test_a_file_that_cannot_be_read_counts_when_the_only_file_is_chosen(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write(a100=shared(2))
    (tmp_path / "t4").write_bytes(b"\xff")
    assert folder.check() == []


def test_nothing_is_chosen_while_the_file_of_the_label_cannot_be_read(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    (tmp_path / "t4").write_bytes(b"\xff")
    folder.check("t4")
    assert not folder.config.is_chosen.is_set()
    folder.write(t4=shared(4))
    assert folder.check("t4") == [4]
    assert folder.config.is_chosen.is_set()


def test_a_node_without_the_label_has_the_default_key(tmp_path: Path) -> None:
    folder = Folder(tmp_path, default="t4")
    folder.write(a100=shared(2), t4=shared(4))
    assert folder.check() == [4]


@pytest.mark.parametrize(
    ("keys", "fallbacks", "expected"),
    [
        (["a", "default"], ["named", "single"], "default"),
        (["a"], ["named", "single"], "a"),
        (["a", "b"], ["named", "single"], ""),
        (["default"], ["empty", "named"], ""),
        (["a"], [], ""),
    ],
)
def test_fallbacks_are_tried_in_order(keys: list[str], fallbacks: list[str], expected: str) -> None:
    assert fallback_key(keys, fallbacks) == expected


def test_one_file_is_applied_when_it_changes_and_a_fault_in_it_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, applied = tmp_path / "config.yaml", list[int]()
    file = ConfigFile(path, OWN, parse, lambda config: applied.append(config.replicas_of("nvidia.com/gpu")))
    file.check()
    path.write_text(shared(4))
    file.check()
    file.check()
    path.write_text(WRONG)
    file.check()
    assert (applied, file.config.replicas_of("nvidia.com/gpu")) == ([4], 4)
    assert sum("must be >= 2" in message for message in caplog.messages) == 1
    path.write_text(shared(3))
    file.check()
    assert applied == [4, 3]


def test_what_is_no_text_is_a_fault_of_the_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, applied = tmp_path / "config.yaml", list[PluginConfig]()
    path.write_bytes(b"\xff\xfe")
    ConfigFile(path, OWN, parse, applied.append).check()
    assert applied == []
    assert "cannot be read" in caplog.text
