"""What `shoal up` refuses to start with: one line that says what is wrong, where, and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.living_cluster import shoal_apart

LAYOUTS = "possible: all-disabled, all-enabled, all-balanced, all-1g.5gb"
FLEETS = {
    "2xp5.48xlrge": '"p5.48xlrge" is not a machine of the catalogue; did you mean p5.48xlarge, ',
    "1xp4d.24xlarge[mig=8x1g.5gb]": f"the MIG layout 8x1g.5gb is not possible on 8 x A100-SXM4-40GB; {LAYOUTS}",
    "1xg5.12xlarge[mig=all-1g.5gb]": "the MIG layout all-1g.5gb is not possible on 4 x A10G; possible: none,",
    "1xp5.48xlarge[time-slicing=abc]": "time-slicing=abc is not a number of replicas; e.g. time-slicing=4",
    "0xp5.48xlarge": "0 machines; 1 to 100000 are possible",
}


@pytest.mark.parametrize("nodes", FLEETS)
def test_a_fleet_that_cannot_be_is_told_with_what_can(nodes: str, tmp_path: Path) -> None:
    refused = shoal_apart("up", "--memory", "--port", "0", "--state", str(tmp_path), "--nodes", nodes)
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert refused.err.startswith(f"shoal: --nodes {nodes}: {FLEETS[nodes]}")


BEGIN = "name: mine\nof: container\nwhen: {state: running}\n"
STAGES = {
    f"{BEGIN}after: {{wiat: 1s}}\nnext: {{verb: exit}}\n": "line 4: after.wiat: ",
    f"{BEGIN}next: {{verb: exit\n": "line 5: not YAML: ",
    f"{BEGIN}next: {{verb: explode}}\n": "line 4: next.verb: ",
}


@pytest.mark.parametrize("text", STAGES, ids=["unknown field", "not YAML", "unknown verb"])
def test_a_stage_file_that_cannot_be_read_is_told_with_line_and_field(text: str, tmp_path: Path) -> None:
    file = tmp_path / "stages" / "mine.yaml"
    file.parent.mkdir()
    file.write_text(text)
    where = ("--state", str(tmp_path / "state"), "--stages", str(file.parent))
    refused = shoal_apart("up", "--memory", "--port", "0", "--metrics-port", "0", "--nodes", "1xcpu-8", *where)
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1), refused
    assert refused.err.startswith(f"shoal: {file}: {STAGES[text]}")
