"""Every link leads somewhere, and no page leans on one person's machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.pages import PAGES, ROOT, anchors, links, name

_SOMEBODYS_PATHS = re.compile(r"/work/|\.\./shared|/home/(?!you\b)|/Users/")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_to_a_file_and_every_anchor_to_a_heading(page: Path) -> None:
    lost = []
    for link in links(page):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


def test_the_readme_leads_to_every_page_of_the_docs() -> None:
    seen: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        paths = [link.partition("#")[0] for link in links(page) if "://" not in link]
        ahead += [(page.parent / path).resolve() for path in paths if path]
    assert [name(page) for page in PAGES if page not in seen and page.parent.name != "changelog.d"] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_page_names_a_path_of_one_machine(page: Path) -> None:
    assert _SOMEBODYS_PATHS.findall(page.read_text(encoding="utf-8")) == []


def test_a_lost_anchor_would_be_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One (and only) heading: `x`\n```\n# no heading\n[a](b.md)\n```\n[c](d.md#e)\n")
    assert anchors(page) == {"one-and-only-heading-x"}
    assert links(page) == ["d.md#e"]
