"""The administrator's kubeconfig: a file of its own, or one entry among others in a file that people have.

A file that is there is merged into: entries named `shoal` are replaced, everything else stays as it was, and `shoal`
becomes the current context. What cannot be read as a kubeconfig is refused rather than overwritten, because it may be
the only access to other clusters.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from shoal.api.yaml_out import to_yaml
from shoal.embedded.apiserver.private_files import write_private
from shoal.embedded.apiserver.security.authority import Authority
from shoal.units.errors import UserError, Where

NAME = "shoal"
_LISTS = ("clusters", "contexts", "users")


def kubeconfig(url: str, authority: Authority) -> dict[str, Any]:
    user = {
        "client-certificate-data": _base64(authority.admin.certificate),
        "client-key-data": _base64(authority.admin.key),
    }
    cluster = {"certificate-authority-data": _base64(authority.root.certificate), "server": url}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "current-context": NAME,
        "preferences": {},
        "users": [{"name": NAME, "user": user}],
    }


def write_kubeconfig(path: Path, url: str, authority: Authority) -> None:
    """Written whole or not at all, for its owner alone."""
    own = kubeconfig(url, authority)
    merged = _merged(_read(path), own)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path.resolve(), to_yaml(merged).encode())


def _read(path: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (yaml.YAMLError, UnicodeDecodeError):
        raise _unreadable(path) from None
    if found is None:
        return {}
    lists_are_lists = isinstance(found, dict) and all(isinstance(found.get(key) or [], list) for key in _LISTS)
    if not lists_are_lists or found.get("kind", "Config") != "Config":
        raise _unreadable(path)
    return dict(found)


def _unreadable(path: Path) -> UserError:
    fix = "it was left as it is; choose another file"
    return UserError("this is not a kubeconfig", where=Where(str(path)), fix=fix)


def _merged(there: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    merged = {**own, **there, "current-context": own["current-context"]}
    for key in _LISTS:
        others = [one for one in there.get(key) or [] if not (isinstance(one, dict) and one.get("name") == NAME)]
        merged[key] = [*others, *own[key]]
    return merged


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
