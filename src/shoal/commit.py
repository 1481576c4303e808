"""Tells the commit from which the program was built. It imports the standard library only, because builds call it."""

from __future__ import annotations

from pathlib import Path

_FILE = "COMMIT"
_LENGTHS = (40, 64)
_MOST_BYTES = 2**22


def commit() -> str:
    """Of the distribution, or of the checkout in which the sources are; empty if it is unknown."""
    package = Path(__file__).parent
    written = _text(package / _FILE)
    return written if _is_commit(written) else commit_of_checkout(package.parents[1])


def commit_of_checkout(root: Path) -> str:
    """Empty if the folder is no checkout of git."""
    git = root / ".git"
    if git.is_file():
        # A worktree names its folder in a file.
        git = root / _text(git).removeprefix("gitdir:").strip()
    head = _text(git / "HEAD")
    if _is_commit(head):
        return head
    name = head.removeprefix("ref:").strip()
    if not name or ".." in name:
        return ""
    shared = git / (_text(git / "commondir") or ".")
    for folder in (git, shared):
        found = _text(folder / name)
        if _is_commit(found):
            return found
    for line in _text(shared / "packed-refs").splitlines():
        found, _, packed = line.partition(" ")
        if packed == name and _is_commit(found):
            return found
    return ""


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""


def _is_commit(text: str) -> bool:
    return len(text) in _LENGTHS and all(letter in "0123456789abcdef" for letter in text)
