"""Formats log records: a line of text, or one JSON object on a line.

Guarantees: a record is one line, whatever its message contains; JSON has the fields `time` (RFC 3339, UTC), `level`,
`logger` and `message`, and `error` with the traceback if there is one.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import msgspec

from shoal.units.visible_text import visible

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")
_TEXT = "%(asctime)s %(levelname)s %(message)s"


class TextFormatter(logging.Formatter):
    """Messages quote what users of the cluster wrote; a terminal does not obey control characters in them."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record), keeps_blanks=True)


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(entry).decode()


def formatter(form: str) -> logging.Formatter:
    return JsonFormatter() if form == "json" else TextFormatter(_TEXT)
