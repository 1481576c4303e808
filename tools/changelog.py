"""Assemble CHANGELOG.md from the fragments in changelog.d: `python -m tools.changelog VERSION DATE [--draft]`.

The fragments are sorted by kind and name, put under a heading for the version at the top of the file, and removed.
`--draft` prints the section and changes nothing. A fragment whose kind is unknown, or that is empty, is an error.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = {
    "security": "Security",
    "added": "Added",
    "changed": "Changed",
    "fixed": "Fixed",
    "removed": "Removed",
}
TITLE = "# Changelog\n"
_NAME = re.compile(r"[a-z0-9-]+\.([a-z]+)\.md")
_VERSION = re.compile(r"\d{1,6}\.\d{1,6}\.\d{1,6}")
_ITEM = re.compile(r"^- ", re.MULTILINE)
"""A fragment is one entry, or a list of several."""
_WIDTH = 120
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class FragmentError(ValueError):
    """A fragment cannot be used; the message names it."""


def fragments(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.md") if path.name != "README.md")


def section(version: str, date: str, paths: list[Path]) -> str:
    """The section of one version: a heading, then a list for each kind that has fragments."""
    by_kind: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for path in paths:
        named = _NAME.fullmatch(path.name)
        if named is None or named[1] not in KINDS:
            raise FragmentError(f"{path.name}: must be named <topic>.<kind>.md, with one of {', '.join(KINDS)} as kind")
        texts = [" ".join(text.split()) for text in _ITEM.split(path.read_text(encoding="utf-8"))]
        if not any(texts):
            raise FragmentError(f"{path.name}: is empty")
        by_kind[named[1]] += [_entry(text) for text in texts if text]
    parts = [f"## {version} ({date})\n"]
    parts += [f"### {KINDS[kind]}\n\n{''.join(entries)}" for kind, entries in by_kind.items() if entries]
    return "\n".join(parts)


def _entry(text: str) -> str:
    return (
        textwrap.fill(f"- {text}", _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        + "\n"
    )


def with_section(changelog: str, text: str) -> str:
    """The changelog with a section put before those of older versions."""
    older = changelog.removeprefix(TITLE).lstrip("\n")
    return "\n".join(part for part in (TITLE, text, older) if part)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("version")
    parser.add_argument("date", help="as in 2026-11-23")
    parser.add_argument("--draft", action="store_true", help="Print the section and change nothing.")
    given = parser.parse_args(arguments)
    if not _VERSION.fullmatch(given.version) or not _DATE.fullmatch(given.date):
        print("the version looks like 0.2.0, the date like 2026-11-23", file=sys.stderr)
        return 2
    paths = fragments(root / "changelog.d")
    try:
        text = section(given.version, given.date, paths)
    except FragmentError as error:
        print(f"changelog.d/{error}", file=sys.stderr)
        return 1
    if given.draft:
        print(text, end="")
        return 0
    file = root / "CHANGELOG.md"
    before = file.read_text(encoding="utf-8") if file.exists() else TITLE
    if f"## {given.version} (" in before:
        print(f"CHANGELOG.md already has a section for {given.version}", file=sys.stderr)
        return 1
    file.write_text(with_section(before, text), encoding="utf-8")
    for path in paths:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
