"""Each shipped stage has a pair of files: a pod and its node, and what the pod's status then becomes and when."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from build.stage_stories import Explanation, told
from build.yaml_texts import yaml_value
from shoal.embedded.kubelets.stage_files import read_stages

_PAIRS = Path(__file__).parent / "pairs"


@pytest.mark.parametrize("name", sorted(read_stages().by_name))
def test_a_stage_does_what_its_pair_says(name: str) -> None:
    story = msgspec.convert(yaml_value((_PAIRS / f"{name}.input.yaml").read_text()), Explanation)
    moments, played = told(story)
    assert name in played
    assert moments == yaml_value((_PAIRS / f"{name}.output.yaml").read_text())


def test_every_pair_has_its_stage() -> None:
    assert {path.name.partition(".")[0] for path in _PAIRS.iterdir()} == read_stages().by_name.keys()
