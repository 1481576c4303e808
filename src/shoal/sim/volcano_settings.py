"""Reads the configuration of Volcano's scheduler from a ConfigMap among manifests."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.decode import Document, Unknown
from shoal.api.yaml_text import read_yaml
from shoal.engine.queues.disciplines.volcano.configuration import DEFAULT, VolcanoConfiguration, read_configuration
from shoal.units.errors import UserError

KEY = "volcano-scheduler.conf"


def volcano_settings(documents: Iterable[Document]) -> VolcanoConfiguration:
    """The last one that can be read, else the default. What cannot be read, and unknown names, are its warnings."""
    found, warnings = DEFAULT, list[str]()
    for document in documents:
        text = _text(document)
        if text is None:
            continue
        where = document.where.below("data").key(KEY)
        try:
            values = [parsed for _, parsed in read_yaml(text)]
            found = read_configuration(values[0] if values else {}, where)
        except UserError as error:
            warnings.append(f"{where}: {error.what}; the last good configuration is used")
    return VolcanoConfiguration(found.actions, found.tiers, found.arguments, (*warnings, *found.warnings))


def is_settings(document: Document) -> bool:
    """Whether it is a ConfigMap with the configuration of Volcano's scheduler."""
    return _text(document) is not None


def _text(document: Document) -> str | None:
    value = document.value
    data = value.raw.get("data") if isinstance(value, Unknown) and value.kind == "ConfigMap" else None
    text = data.get(KEY) if isinstance(data, dict) else None
    return text if isinstance(text, str) else None
