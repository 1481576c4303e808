"""The CustomResourceDefinitions of the projects that the values name, from the tables of the embedded server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.embedded.apiserver.foreign.definitions import definitions_of, tables
from shoal.units.errors import UserError, Where
from shoal.units.near_texts import meant_words

Obj = dict[str, Any]
_MISPLACED = "config.openshift.io"


def project_definitions(projects: Sequence[str]) -> list[Obj]:
    """Raises UserError for an unknown project."""
    known = {table.project: (file, table) for file, table in tables()}
    for name in projects:
        if name not in known:
            what = f"project {name} not found{meant_words(str(name), known)}"
            raise UserError(what, where=Where(path="crds.projects"), fix=f"choose among {', '.join(sorted(known))}")
    found = [one for name in projects for one in definitions_of(*known[name])]
    return [one for one in found if one["spec"]["group"] != _MISPLACED]
