"""Whatever is done to manifests that people write, `decide` and `why` answer, or complain in one line."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from build.depth import seeds
from shoal.cli.main import main

ROOT = Path(__file__).parents[2]
EXAMPLES = [list(yaml.safe_load_all(path.read_text())) for path in sorted((ROOT / "examples" / "manifests").iterdir())]
SHARED = ROOT.parent / "shared" / "manifests"

ODD: list[Any] = [
    None,
    0,
    -1,
    3,
    10**12,
    "",
    "x",
    "0.5",
    "1e3",
    "100%",
    True,
    [],
    {},
    [{}],
    {"a": "b"},
    "gpu-0",
    "9" * 20,
]
Steps = tuple[str | int, ...]


def places(value: Any, path: Steps = ()) -> Iterator[Steps]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield from places(below, (*path, key))


def spoil(documents: list[Any], draw: random.Random) -> None:
    """Take something out, or put something else in its place."""
    *above, last = draw.choice([path for path in places(documents) if len(path) > 1])
    holder: Any = documents
    for key in above:
        holder = holder[key]
    if draw.random() < 0.4:
        del holder[last]
    else:
        holder[last] = copy.deepcopy(draw.choice(ODD))


@pytest.mark.parametrize("seed", seeds(30))
def test_spoiled_manifests_are_answered_and_each_error_is_one_line(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(seed)
    documents = copy.deepcopy(draw.choice(EXAMPLES))
    for _ in range(draw.randint(1, 2)):
        spoil(documents, draw)
    path = tmp_path / "world.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    code = main(["decide", "--json", "-f", str(path)])
    out, err = capsys.readouterr()
    if code == 2:
        complaint = [line for line in err.splitlines() if not line.startswith("shoal: warning: ")]
        assert complaint
        assert all(line.startswith(f"shoal: {path}: document 1") for line in complaint)
        assert not out or len(json.loads(out)["errors"]) == len(complaint)
        return
    assert code == 0, err
    for round_ in json.loads(out)["rounds"]:
        for each in [*round_["placed"][:2], *round_["refused"][:2]]:
            assert main(["why", "-f", str(path), each.get("pod") or each["group"]]) == 0


@pytest.mark.skipif(not SHARED.is_dir(), reason="the collected manifests are not here")
def test_manifests_as_people_have_them_are_answered_or_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for path in sorted(SHARED.rglob("*.yaml")):
        code = main(["decide", "-f", str(path)])
        err = capsys.readouterr().err
        assert code in (0, 2), f"{path}: {err}"
        assert (code == 2) == any(not line.startswith("shoal: warning: ") for line in err.splitlines()), path
