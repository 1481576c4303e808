"""Rules of roles, one line each, so that a hundred roles can be read: `verbs resources @groups =names`.

Several of one sort are separated by commas; no `@` is the core group; a resource that starts with a slash is a path.
Lists come out sorted, as Kubernetes writes its own roles.
"""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]
READ = "get,list,watch"
WRITE = "create,delete,deletecollection,patch,update"
READ_WRITE = f"{READ},{WRITE}"
EVENTS = "create,patch,update events @,events.k8s.io"


def rule(line: str) -> Obj:
    verbs, subjects, *more = line.split()
    found: Obj = {"verbs": _sorted(verbs)}
    if subjects.startswith("/") or more == ["(paths)"]:
        return {"nonResourceURLs": _sorted(subjects), **found}
    groups = next((part[1:] for part in more if part.startswith("@")), "")
    names = next((part[1:] for part in more if part.startswith("=")), "")
    found = {"apiGroups": _sorted(groups), "resources": _sorted(subjects), **found}
    if names:
        found["resourceNames"] = _sorted(names)
    return found


def rules(lines: tuple[str, ...]) -> list[Obj]:
    return [rule(line) for line in lines]


def _sorted(listed: str) -> list[str]:
    return sorted(listed.split(","))
