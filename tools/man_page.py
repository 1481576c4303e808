"""Writes the manual page shoal(1) from the list of commands.

python -m tools.man_page

A distribution installs it as share/man/man1/shoal.1.
"""

from __future__ import annotations

import sys
from pathlib import Path

from shoal.cli.command_examples import EXAMPLES
from shoal.cli.commands import Commands

PAGE = Path(__file__).parents[1] / "docs" / "shoal.1"
_EXIT = (("0", "Done."), ("1", "Failed."), ("2", "Wrong input or usage."), ("130", "Interrupted."))


def man_page(summary: str) -> str:
    """`summary`: the first line of the help."""
    lines = [
        '.TH SHOAL 1 "" Shoal "User Commands"',
        ".SH NAME",
        f"shoal \\- {_escaped(summary)}",
        ".SH SYNOPSIS",
        ".B shoal",
        ".I COMMAND",
        "[OPTIONS]",
        ".br",
        ".B shoal",
        ".I COMMAND",
        "\\-\\-help",
    ]
    for heading in dict.fromkeys(entry.heading for entry in Commands.entries):
        lines.append(f".SH {_escaped(heading).upper()}")
        for entry in (one for one in Commands.entries if one.heading == heading):
            lines += _term(f"shoal {entry.name}", entry.summary)
    lines.append(".SH OPTIONS")
    for option, text in Commands.general:
        lines += _term(option, text)
    lines += [".SH ENVIRONMENT", *_term("KUBECONFIG", "The kubeconfig that names the cluster, without --kubeconfig.")]
    lines.append(".SH EXIT STATUS")
    for code, text in _EXIT:
        lines += _term(code, text)
    lines.append(".SH EXAMPLES")
    for example in EXAMPLES[""]:
        lines += [".nf", _escaped(example), ".fi"]
    return "\n".join(lines) + "\n"


def _term(name: str, text: str) -> list[str]:
    return [".TP", f".B {_escaped(name)}", _escaped(text)]


def _escaped(text: str) -> str:
    """As the formatter prints it: hyphens stay hyphens, and no line begins with a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{text}" if text[:1] in (".", "'") else text


def main() -> int:
    from shoal.cli.main import app

    PAGE.write_text(man_page(str(app.info.help)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
