"""`shoal explain` and `shoal xid` print a paragraph, or say what is near."""

from __future__ import annotations

import json

import pytest

from shoal.cli.main import main

Capture = pytest.CaptureFixture[str]


def test_several_words_are_one_subject(capsys: Capture) -> None:
    assert main(["explain", "CUDA", "out", "of", "memory"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("CUDA out of memory")
    assert all(len(line) <= 80 for line in out.splitlines())


def test_an_unknown_subject_ends_with_2_and_names_a_similar_one(capsys: Capture) -> None:
    assert main(["explain", "nvidia.com/mig.confg"]) == 2
    assert "nvidia.com/mig.config or" in capsys.readouterr().err
    assert main(["explain", "qqqqqqqq"]) == 2
    assert "is not explained" in capsys.readouterr().err


def test_programs_get_the_paragraphs_as_one_document(capsys: Capture) -> None:
    assert main(["explain", "h100", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["kind"] for each in found] == ["GPU model"] * 3


def test_an_xid_has_its_meaning_its_effect_and_its_remedy(capsys: Capture) -> None:
    assert main(["xid", "79"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "fallen off the bus" in out
    assert "no longer responds" in out
    assert "To do: drain the node" in out


def test_an_unknown_xid_is_said_to_be_unknown(capsys: Capture) -> None:
    assert main(["xid", "777"]) == 0
    assert "Not a known error" in capsys.readouterr().out
    assert main(["xid", "many"]) == 2


@pytest.mark.parametrize("name", ["shl-316", "NoSuchVolume"])
def test_a_rule_has_its_fault_its_effect_and_its_remedy(capsys: Capture, name: str) -> None:
    assert main(["explain", name]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("SHL-316, NoSuchVolume (rule) Error: a container mounts a volume that the pod does not have.")
    assert "The pod is refused. To do: name a volume of the pod" in out
    assert main(["explain", "NoSuchRuleAtAll"]) == 2
