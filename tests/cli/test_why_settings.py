"""Whether `shoal why` says that it assumes the default settings of `shoal run`, because no object has the real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.manifests import Object, as_file, node, pod
from shoal.cli.main import main

ASSUMED = "settings no Lease of kube-system has the settings of shoal run"


def living(made: Object) -> Object:
    made["metadata"]["uid"] = f"uid-{made['metadata']['name']}"
    return made


def waiting(**spec: Any) -> Object:
    return living(pod("t/p", 16, status={"phase": "Pending"}, **spec))


def told(tmp_path: Path, capsys: pytest.CaptureFixture[str], *objects: Object, options: tuple[str, ...] = ()) -> str:
    assert main(["why", "pod/p", "-f", as_file(tmp_path, *objects), *options]) == 0
    return " ".join(capsys.readouterr().out.split())


CONFIGURATION = {
    "apiVersion": "config.shoal.dev/v1alpha1",
    "kind": "ShoalConfiguration",
    "metadata": {"name": "configuration"},
    "preemption": {"moves": True},
}
CASES: dict[str, tuple[list[Object], tuple[str, ...], bool]] = {
    "a waiting pod of shoal run": ([living(node("n", 8)), waiting(schedulerName="shoal")], (), True),
    "one whose settings are known": (
        [living(node("n", 8)), waiting(schedulerName="shoal"), CONFIGURATION],
        (),
        False,
    ),
    "one of another scheduler": ([living(node("n", 8)), waiting()], (), False),
    "one that runs": (
        [living(node("n", 8)), living(pod("t/p", 1, on="n", status={"phase": "Running"}, schedulerName="shoal"))],
        (),
        False,
    ),
    "a manifest": ([node("n", 8), pod("t/p", 16, schedulerName="shoal")], (), False),
    "a policy that is given": ([living(node("n", 8)), waiting(schedulerName="shoal")], ("--policy", "FGD"), False),
}


@pytest.mark.parametrize("case", CASES)
def test_assumed_settings_are_named_where_the_answer_depends_on_them(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects, options, is_named = CASES[case]
    assert (ASSUMED in told(tmp_path, capsys, *objects, options=options)) is is_named


def test_only_a_configuration_that_cannot_be_read_is_named_as_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = {key: value for key, value in CONFIGURATION.items() if key != "metadata"}
    for own, is_named in ((plain, False), ({**plain, "preemption": {"mooves": True}}, True)):
        assert main(["why", "pod/p", "-f", as_file(tmp_path, node("n", 8), waiting(), own)]) == 0
        assert ("ShoalConfiguration" in capsys.readouterr().err) is is_named
