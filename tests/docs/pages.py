"""The pages of the repository as tests read them: files, links, console lines."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[2]

PAGES: tuple[Path, ...] = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "changelog.d").glob("*.md")),
)

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_PIPE = re.compile(r"\s\\?\|\s")
_MARKS = re.compile(r"[^\w\- ]")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    """The page without its code blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def code(page: Path) -> str:
    """The code blocks of the page."""
    return "\n".join(_FENCE.findall(page.read_text(encoding="utf-8")))


def links(page: Path) -> list[str]:
    return _LINK.findall(prose(page))


def heading_levels(page: Path) -> list[int]:
    """The levels of the headings, in the order of the page."""
    return [len(marks) for marks in re.findall(r"^(#+) ", prose(page), re.MULTILINE)]


def anchors(page: Path) -> set[str]:
    """The anchors that a code host makes of the page's headings."""
    return {_MARKS.sub("", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(prose(page))}


def console_lines(page: Path) -> list[str]:
    """What a reader would type: lines behind a dollar sign."""
    return re.findall(r"^\$ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)


def shoal_lines(page: Path) -> list[list[str]]:
    """Arguments of every `shoal` command shown, in console blocks and in prose."""
    shown = [line for line in console_lines(page) if line.startswith("shoal ")]
    shown += re.findall(r"`(shoal\s[^`]+)`", prose(page))
    # What it is piped to is another program's to understand.
    return [shlex.split(_PIPE.split(line)[0])[1:] for line in shown]
