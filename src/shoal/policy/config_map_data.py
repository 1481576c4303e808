"""Reads the configurations that a ConfigMap contains as text."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.yaml_text import read_yaml
from shoal.policy.advice import Obj
from shoal.policy.fields import string_keys
from shoal.units.errors import UserError


def configurations(obj: Obj, *words: str) -> Iterator[tuple[str, Obj]]:
    """Path and content of each text that contains one of the words and is a map in YAML. The program that reads the
    text reports that it is not YAML.
    """
    for key, text in string_keys(obj.get("data")).items():
        if isinstance(text, str) and any(word in text for word in words):
            content = _read(text)
            if content:
                yield f"data[{key}]", content


def _read(text: str) -> Obj:
    try:
        return string_keys(next((found for _, found in read_yaml(text)), None))
    except UserError:
        return {}
