"""docs/client.md lists the public API as `shoal.client` exports it."""

from __future__ import annotations

import re

import shoal.client
from docs.pages import ROOT


def test_the_page_lists_what_the_package_exports() -> None:
    page = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
    section = page.split("## Public names\n", 1)[1].split("\n## ", 1)[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == shoal.client.__all__


def test_every_exported_name_is_found() -> None:
    assert [name for name in shoal.client.__all__ if not hasattr(shoal.client, name)] == []
