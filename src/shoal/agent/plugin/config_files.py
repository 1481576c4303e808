"""Follows the files with the device plugin's configuration, and applies changes while the plugin runs.

A node is configured by one file, or by a folder with a file for each kind of node (a mounted ConfigMap), of which the
Node's label `nvidia.com/device-plugin.config` names one. The files are compared at each check, because a kubelet
replaces the files of a ConfigMap by renaming folders. A configuration with which the plugin would not start changes
nothing, and neither does a file that cannot be read; the other files of its folder apply.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from shoal.devices.labelled_config import LabelledConfig, fallback_key
from shoal.devices.plugin_resources import PluginConfigError

_log = logging.getLogger("shoal.agent.plugin")
T = TypeVar("T")
Parse = Callable[[str], tuple[T, tuple[str, ...]]]
"""Raises `PluginConfigError`; the notes say what is ignored."""
_LONGEST_BYTES = 1 << 20


class ConfigFile(Generic[T]):
    """One file. `own`: what applies until the file can be read."""

    def __init__(self, path: Path, own: T, parse: Parse[T], apply: Callable[[T], None]) -> None:
        self._path, self._parse, self._apply = path, parse, apply
        self.config = own
        self._text: str | None = None
        self._complaint = ""

    def check(self) -> None:
        try:
            text = _text(self._path)
        except (OSError, ValueError) as error:
            self._complain(f"{self._path}: cannot be read: {error}")
            return
        if text == self._text:
            return
        self._text = text
        try:
            self.config, notes = self._parse(text)
        except PluginConfigError as error:
            self._complain(f"{self._path}: was not applied: {error}")
            return
        self._complaint = ""
        _log.info("%s", "; ".join((f"{self._path}: was applied", *notes)))
        self._apply(self.config)

    def _complain(self, what: str) -> None:
        """The same failure is logged once."""
        if what != self._complaint:
            _log.warning("%s", what)
        self._complaint = what


class ConfigKeys(msgspec.Struct, frozen=True):
    """How a node without the label gets a file."""

    default: str = ""
    """The key; if empty, `fallbacks` choose one."""
    fallbacks: tuple[str, ...] = ("named", "single", "empty")
    waits_for_label: bool = False
    """Whether nothing is chosen before it is known that the Node has the label or has none."""


class ConfigFolder(Generic[T]):
    """The files of a folder, by the Node's label."""

    def __init__(
        self, path: Path, followed: LabelledConfig[T], apply: Callable[[T], None], keys: ConfigKeys | None = None
    ) -> None:
        self._path, self._followed, self._apply, self._keys = path, followed, apply, keys or ConfigKeys()
        self._label = None if self._keys.waits_for_label else ""
        self.is_chosen = threading.Event()
        """Set as soon as the first choice was made."""
        self._lock = threading.Lock()
        self._complaint = ""

    def set_label(self, key: str) -> None:
        """The value of the Node's label, empty without one. The file is chosen at once."""
        self._label = key
        self.check()

    def check(self) -> None:
        with self._lock:
            label = self._label
            if label is None:
                return
            try:
                texts, unreadable = _files(self._path)
            except OSError as error:
                self._complain(f"{self._path}: cannot be read: {error}")
                return
            self._complain("; ".join(f"{name}: cannot be read: {why}" for name, why in unreadable.items()))
            names = sorted({*texts, *unreadable})
            key = label or self._keys.default or fallback_key(names, self._keys.fallbacks)
            if key in unreadable:
                return
            before = self._followed.config
            change = self._followed.follow(key, {str(self._path): {"data": texts}})
            if change is not None:
                _log.log(logging.WARNING if change.is_fault else logging.INFO, "%s", change.message)
            if self._followed.config != before:
                self._apply(self._followed.config)
            self.is_chosen.set()

    def _complain(self, what: str) -> None:
        """The same failure is logged once; empty: there is none any more."""
        if what and what != self._complaint:
            _log.warning("%s", what)
        self._complaint = what


def _files(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The texts of the files, and why others cannot be read, by name. Raises `OSError` for the folder."""
    texts: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    for path in sorted(folder.iterdir()):
        # Names with dots in front are the kubelet's own.
        if path.name.startswith(".") or path.is_dir():
            continue
        try:
            texts[path.name] = _text(path)
        except (OSError, ValueError) as error:
            unreadable[path.name] = str(error)
    return texts, unreadable


def _text(path: Path) -> str:
    """Raises `OSError`, and `ValueError` for what is no text or too large."""
    if path.stat().st_size > _LONGEST_BYTES:
        raise ValueError(f"larger than {_LONGEST_BYTES} bytes")
    return path.read_text()
