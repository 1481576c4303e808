"""The navigation of the documentation site has every page once. The generator checks the links (`make docs`)."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from docs.pages import PAGES, ROOT, heading_levels, links, name

INDEX = ROOT / "docs" / "index.md"
DESIGNS = ROOT / "docs" / "designs" / "README.md"


def _linked(page: Path) -> list[Path]:
    return [(page.parent / link).resolve() for link in links(page) if link.endswith(".md")]


def test_the_navigation_has_the_five_parts() -> None:
    parts = re.findall(r"^## (.+)$", INDEX.read_text(encoding="utf-8"), re.MULTILINE)
    assert parts == ["Start", "How-to", "Reference", "Explanation", "Development"]


def test_every_page_is_in_the_navigation() -> None:
    shown = {*_linked(INDEX), *_linked(DESIGNS), INDEX}
    fragments = ROOT / "changelog.d"
    pages = [page for page in PAGES if page.parent != fragments or page.name == "README.md"]
    assert [name(page) for page in pages if page not in shown] == []


def test_no_page_is_twice_in_the_navigation() -> None:
    rows = [line for line in INDEX.read_text(encoding="utf-8").splitlines() if line.startswith("| [")]
    shown = [re.findall(r"\]\(([^)]+)\)", row)[0] for row in rows]
    assert len(shown) > 30
    assert sorted({*shown}) == sorted(shown)


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name != "changelog.d"], ids=name)
def test_no_heading_of_a_page_skips_a_level(page: Path) -> None:
    levels = heading_levels(page)
    assert levels[0] == 1
    assert [(upper, lower) for upper, lower in pairwise(levels) if lower > upper + 1] == []


def test_the_tools_of_the_site_are_in_no_other_lock() -> None:
    for lock in ("run.lock", "dev.lock"):
        text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
        assert "sphinx==" not in text
    assert "--hash=sha256:" in (ROOT / "requirements" / "docs.lock").read_text(encoding="utf-8")


@pytest.mark.parametrize("form", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=name)
def test_an_issue_form_has_what_the_code_host_requires(form: Path) -> None:
    content = yaml.safe_load(form.read_text(encoding="utf-8"))
    if form.name == "config.yml":
        assert content.keys() <= {"blank_issues_enabled", "contact_links"}
        return
    assert {"name", "description", "body"} <= content.keys()
    fields = [field for field in content["body"] if field["type"] != "markdown"]
    assert fields
    assert all({"id", "attributes"} <= field.keys() and field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)
