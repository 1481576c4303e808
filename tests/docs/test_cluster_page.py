"""The map of the embedded cluster names every room, and the limits on its page are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.pages import ROOT, code, prose
from shoal.embedded.apiserver.bodies.json_fault import MAX_DEPTH
from shoal.embedded.apiserver.cel.program import PER_CALL_LIMIT
from shoal.embedded.apiserver.crds.schema_rules import EXPRESSION_LIMIT, SCHEMA_LIMIT
from shoal.embedded.apiserver.dynamic.endpoints import ANNOTATION
from shoal.embedded.apiserver.server.receiving import LARGEST_BODY
from shoal.embedded.apiserver.settings import KUBE_VERSIONS, Settings
from shoal.embedded.apiserver.state.history import Limits

CLUSTER = ROOT / "src" / "shoal" / "embedded" / "apiserver"
PAGE = ROOT / "docs" / "cluster.md"


def _rows(text: str, heading: str) -> list[list[str]]:
    lines = iter(text[text.index(heading) :].splitlines()[2:])
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_the_map_of_the_embedded_cluster_names_every_file_and_folder() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    plan = text[text.index("\nembedded/apiserver/\n") :]
    named = set(re.findall(r"[a-z_]+(?:\.py|/)", plan[: plan.index("```")])) - {"embedded/", "apiserver/"}
    there = {path.name for path in CLUSTER.glob("*.py")} - {"__init__.py"}
    there |= {f"{path.name}/" for path in CLUSTER.iterdir() if (path / "__init__.py").exists()}
    assert named == there


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    text = " ".join(prose(PAGE).split())
    history = Limits()
    assert history == Limits(100_000, 300.0, 64 << 20)
    settings = Settings(state_dir=None, kubeconfig=Path("kubeconfig"))
    assert (settings.history_events, settings.history_s) == (history.count, history.age_s)
    assert "five minutes, 100,000 events or 64 MiB" in text
    assert (EXPRESSION_LIMIT, SCHEMA_LIMIT, PER_CALL_LIMIT) == (10_000_000, 100_000_000, 1_000_000)
    assert "10 million for one expression of a definition, 100 million for all of its schema" in text
    limits = {row[0]: row[1] for row in _rows(text=PAGE.read_text(encoding="utf-8"), heading="| what | limit |")}
    assert limits["body of a request"] == f"{LARGEST_BODY >> 20} MiB"
    assert limits["nesting of a body"] == f"{MAX_DEPTH} levels"


def test_the_annotation_of_endpoints_is_the_one_that_the_code_reads() -> None:
    assert f"`{ANNOTATION}`" in prose(PAGE)
    assert f"{ANNOTATION}: " in code(PAGE)


@pytest.mark.parametrize("version", KUBE_VERSIONS)
def test_every_kubernetes_version_is_on_the_page(version: str) -> None:
    assert f"`{version}`" in prose(PAGE) or f"`--kube-version {version}`" in prose(PAGE)


def test_the_codes_on_the_page_of_errors_are_those_of_the_answers() -> None:
    built = (CLUSTER / "status.py").read_text(encoding="utf-8")
    pairs = set(re.findall(r'ApiError\((\d{3}), "(\w+)"', built))
    assert len(pairs) > 10
    rows = _rows((ROOT / "docs" / "errors.md").read_text(encoding="utf-8"), "| code | reason |")
    assert {(row[0], reason) for row in rows for reason in re.findall(r"`(\w+)`", row[1])} == pairs
