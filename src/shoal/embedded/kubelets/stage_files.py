"""Reads stages from YAML files, one behaviour in each file. Errors name file, line and field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import yaml

from shoal.embedded.kubelets.stage import Stage, Stages
from shoal.embedded.machines.machine_types import nearest
from shoal.units.errors import UserError

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SHIPPED = Path(__file__).parent / "stages"
_AT = re.compile(r"^(?P<words>.*?)(?: - at `\$(?P<path>[^`]*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]*)`")
_INNER = re.compile(r"(?P<field>[a-z]+\.[a-z]+): (?P<words>.*)", re.DOTALL)
"""Errors of a stage that checks several fields name the field."""
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


def read_stages(folders: Iterable[Path] = ()) -> Stages:
    """The shipped stages, then those of each folder."""
    return Stages(stage for folder in (_SHIPPED, *folders) for stage in _of_folder(folder))


def read_stage(text: str, file: str) -> Stage:
    try:
        root = yaml.compose(text, Loader=_LOADER)
        value = yaml.load(text, Loader=_LOADER)  # noqa: S506 - both are safe loaders
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark is not None else ""
        raise UserError(f"{file}: {line}not YAML: {getattr(error, 'problem', None) or error}") from None
    try:
        return msgspec.convert(value, Stage)
    except msgspec.ValidationError as error:
        found = _AT.match(str(error))
        words, path = (found["words"], found["path"] or "") if found else (str(error), "")
        unknown = _UNKNOWN.search(words)
        inner = _INNER.match(words)
        if unknown is not None:
            words = f"no such field; {nearest(unknown['name'], _known_fields(path))}"
            path = f"{path}.{unknown['name']}"
        elif inner is not None:
            path, words = f"{path}.{inner['field']}", inner["words"]
        at = _line_of(root, path)
        field = f"{path.lstrip('.')}: " if path else ""
        raise UserError(f"{file}: line {at}: {field}{words}") from None


def _of_folder(folder: Path) -> Iterator[Stage]:
    if not folder.is_dir():
        raise UserError(f"{folder}: folder not found")
    paths = sorted((*folder.glob("*.yaml"), *folder.glob("*.yml")))
    if not paths:
        raise UserError(f"{folder}: the folder has no stages; stages are files *.yaml")
    for path in paths:
        try:
            yield read_stage(path.read_text("utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: cannot be read: {error}") from None


def _known_fields(path: str) -> tuple[str, ...]:
    """The known fields of the object at the path."""
    type_: Any = Stage
    for key, _ in _STEP.findall(path):
        if key:
            type_ = next(field.type for field in msgspec.structs.fields(type_) if field.encode_name == key)
        else:
            type_ = get_args(type_)[0]
    return tuple(field.encode_name for field in msgspec.structs.fields(type_))


def _line_of(node: yaml.Node | None, path: str) -> int:
    """The line of the deepest part of the path that the file contains."""
    line = node.start_mark.line if node is not None else 0
    for key, index in _STEP.findall(path):
        below: yaml.Node | None = None
        if isinstance(node, yaml.MappingNode):
            for name, value in node.value:
                if name.value == key:
                    line, below = name.start_mark.line, value
        elif isinstance(node, yaml.SequenceNode) and index and int(index) < len(node.value):
            below = node.value[int(index)]
            line = below.start_mark.line
        if below is None:
            break
        node = below
    return line + 1
