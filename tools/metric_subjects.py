"""Writes the metrics of docs/metrics.md as data, so that `shoal explain` knows them.

python -m tools.metric_subjects
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"
DATA = PAGE.parent.parent / "src" / "shoal" / "data" / "metrics.json"
_NAME = re.compile(r"`([a-z][a-zA-Z0-9_:]*_[a-zA-Z0-9_:]+)`")
_TYPES = ("gauge", "counter", "histogram", "summary", "info")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def metric_rows(page: str) -> list[list[str]]:
    """Name, type, labels and meaning of each metric; the first row counts where a name occurs twice."""
    found: dict[str, list[str]] = {}
    for line in page.splitlines():
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if len(cells) < 4 or cells[1] not in _TYPES:
            continue
        labels, text = _plain(cells[2]), _plain(cells[3])
        for name in _NAME.findall(cells[0]):
            found.setdefault(name, [name, cells[1], labels, text])
    return [found[name] for name in sorted(found)]


def _plain(text: str) -> str:
    return _LINK.sub(r"\1", text).replace("`", "")


def metrics_data() -> str:
    rows = metric_rows(PAGE.read_text(encoding="utf-8"))
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n"


def main() -> int:
    DATA.write_text(metrics_data(), encoding="utf-8")
    sys.stdout.write(f"written to {DATA}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
