"""The documentation site: Sphinx reads the Markdown pages of the repository as they are (`make docs`).

The navigation is the page docs/index.md: each of its sections is a part of the sidebar, and each of its links is a page
there. A list of pages in this file would be a second table of contents that readers of the repository do not see.
"""

from __future__ import annotations

import re
from pathlib import Path

import sphinx.application

ROOT = Path(__file__).parents[1]
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_PAGE = re.compile(r"\]\(([^)#]+)\.md\)")

project = "Shoal"
author = "The Shoal authors"
copyright = author  # noqa: A001 - the name that Sphinx reads
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Shoal"
html_extra_path = ["site"]
root_doc = "docs/index"
include_patterns = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "changelog.d/README.md",
    "docs/*.md",
    "docs/*/*.md",
]
myst_heading_anchors = 4
# The blocks of diagrams are shown as text. A script that draws them would be loaded from another host.
suppress_warnings = ["misc.highlighting_failure"]


def _pages(page: str, text: str) -> str:
    """The documents that a text of this page links to, as lines of a table of contents."""
    found = [
        (ROOT / page).parent.joinpath(f"{link}.md").resolve().relative_to(ROOT.resolve())
        for link in _PAGE.findall(text)
    ]
    return "\n".join(f"/{path.with_suffix('').as_posix()}" for path in found)


def _add_navigation(_: sphinx.application.Sphinx, docname: str, source: list[str]) -> None:
    """Give the first page a table of contents for each section, and the list of designs one of its own."""
    if docname == root_doc:
        _, *parts = _SECTION.split(source[0])
        for caption, text in zip(parts[::2], parts[1::2], strict=True):
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{_pages(docname, text)}\n```\n"
    elif docname == "docs/designs/README":
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{_pages(docname, source[0])}\n```\n"


def setup(app: sphinx.application.Sphinx) -> None:
    app.connect("source-read", _add_navigation)
