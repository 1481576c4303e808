"""The page of choices: its short forms are explained by the command, and its figures are those of the calculator."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.data.gpus import find_model, models
from shoal.views.explained_subjects import explained

PAGE = (Path(__file__).parents[2] / "docs" / "choices.md").read_text(encoding="utf-8")
QUESTIONS = PAGE.partition("## Questions")[2].partition("##")[0].splitlines()[4:]


@pytest.mark.parametrize("name", ["gpu choice", "sharing choice", "training and inference", "team structure"])
def test_the_short_form_of_a_table_is_explained(name: str) -> None:
    assert f"`shoal explain {name}`" in PAGE or f"`{name}`" in PAGE
    assert explained(name)[0].subject.lower().startswith(name)


def test_each_question_has_an_answer() -> None:
    rows = [line.strip("|").split(" | ") for line in QUESTIONS if line.startswith("|")]
    assert len(rows) == 15
    assert all(len(row) == 2 and row[0].strip().endswith("?") and row[1].strip().endswith(".") for row in rows)


def test_the_models_with_mig_are_those_of_the_table_of_gpus() -> None:
    assert [model.name for model in models() if model.name.startswith("RTX") and model.mig] == ["RTXPRO6000-BSE"]
    assert all((found := find_model(name)) is not None and found.mig for name in ("A30", "A100-SXM4-40GB", "H200"))
    assert all((found := find_model(name)) is not None and not found.mig for name in ("T4", "L4", "A10G"))
