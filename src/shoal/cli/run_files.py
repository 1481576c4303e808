"""The files of `shoal run --config`: Shoal's own configuration, Kueue's, kube-scheduler's, each where it is given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from shoal.api.decode import Document, Unknown, convert, read
from shoal.api.files import read_whole
from shoal.api.kueue import Configuration
from shoal.api.kueue.unknown_fields import strays
from shoal.api.run_configuration import RUN_KIND, RUN_VERSION, RunConfiguration
from shoal.api.scheduler_config import GROUP, scheduler_config
from shoal.engine.kube_profile import OWN_PLUGINS, KubeProfiles, kube_profiles
from shoal.units.errors import UserError, Where, excerpt

_MAX_BYTES = 4 * 1024 * 1024


class RunFiles(msgspec.Struct, frozen=True):
    """What the files say; each kind occurs at most once. And the positions, for later messages."""

    own: RunConfiguration = msgspec.field(default_factory=RunConfiguration)
    kueue: Configuration | None = None
    profiles: KubeProfiles | None = None
    own_where: Where = Where()
    profiles_where: Where = Where()


def read_run_files(paths: Sequence[Path]) -> RunFiles:
    """Raises UserError with file, object and field for whatever is wrong or not meant for `shoal run`."""
    found: dict[str, RunConfiguration | Configuration | KubeProfiles] = {}
    places: dict[str, Where] = {}
    for path in paths:
        data = read_whole(path, _MAX_BYTES)
        documents = read(data, str(path))
        stray = next(strays(data.decode(), str(path)), None)
        if stray is not None:
            raise stray
        for document in documents:
            name, value = _read(document)
            if name in found:
                raise UserError("is defined twice", where=document.where, fix="keep one of them")
            found[name], places[name] = value, document.where
    own, kueue, profiles = (found.get(name) for name in ("own", "kueue", "profiles"))
    return RunFiles(
        own if isinstance(own, RunConfiguration) else RunConfiguration(),
        kueue if isinstance(kueue, Configuration) else None,
        profiles if isinstance(profiles, KubeProfiles) else None,
        places.get("own", Where()),
        places.get("profiles", Where()),
    )


def _read(document: Document) -> tuple[str, RunConfiguration | Configuration | KubeProfiles]:
    value, where = document.value, document.where
    if isinstance(value, Configuration):
        return "kueue", value
    if isinstance(value, Unknown):
        if value.kind == RUN_KIND:
            return "own", _own(value, where)
        if value.api_version.startswith(f"{GROUP}/"):
            return "profiles", kube_profiles(scheduler_config(value, where, OWN_PLUGINS))
    raise UserError(
        f"is not a configuration that {excerpt('shoal run')} reads",
        where=where,
        fix=f"it reads {RUN_KIND} ({RUN_VERSION}), Kueue's Configuration and KubeSchedulerConfiguration",
    )


def _own(value: Unknown, where: Where) -> RunConfiguration:
    if value.api_version != RUN_VERSION:
        fix = f"supported values are {RUN_VERSION}"
        raise UserError(f"unsupported value {excerpt(value.api_version)}", where=where.below("apiVersion"), fix=fix)
    own = convert(value.raw, RunConfiguration, where)
    own.check(where)
    from shoal.policy.admission_rules.modes import modes_of

    # Refuses names of rules that do not exist.
    modes_of(own.admission, own.webhook.service_namespace, where.below("admission"))
    return own
