"""Implements `shoal bundle`: one file for support, with what is needed to find a problem and without secrets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.option_groups import with_options

if TYPE_CHECKING:
    from shoal.client.clock import Clock
    from shoal.client.http.access import Access
    from shoal.client.port import Api
    from shoal.store.pod_logs import Requests
    from shoal.store.support_bundle.archive import BundleArchive

_MIB = 1 << 20
_PATIENCE_S = 30.0
_MOST_OWN_LOG = 4 * _MIB


@dataclass(frozen=True, kw_only=True)
class BundleOptions:
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="The file to write. By default shoal-bundle-TIME.tar.gz."),
    ] = None
    max_size: Annotated[
        int,
        typer.Option("--max-size", metavar="MIB", min=1, max=1024, help="The limit before compression, in MiB."),
    ] = 100
    logs: Annotated[bool, typer.Option("--logs/--no-logs", help="With the logs of Shoal's pods.")] = True


@with_options
def bundle(options: BundleOptions, access: AccessOptions) -> None:
    """Write a support bundle without secrets: objects, Events, logs of Shoal, versions, configuration, diagnosis."""
    from shoal.cli.cluster_access import announce
    from shoal.cli.output_file import OutFile
    from shoal.client.clock import WallClock
    from shoal.store.support_bundle.archive import BundleArchive

    clock = WallClock()
    stem = f"shoal-bundle-{clock.now():%Y%m%dT%H%M%SZ}"
    file = OutFile(options.file or Path(f"{stem}.tar.gz"), is_private=True)
    archive = BundleArchive(stem, options.max_size * _MIB, int(clock.seconds()))
    cluster = access.access()
    announce(cluster)
    archive.add_json("shoal.json", _own_version())
    _collect(cluster, archive, has_logs=options.logs)
    size = file.write(archive.packed())
    count = len(archive.files)
    typer.echo(f"{count} files, {size / _MIB:.1f} MiB, in {file.path}; look at it before you send it", err=True)
    for one in archive.left_out:
        typer.echo(f"shoal: left out: {one.name}: {one.why}", err=True)


def _own_version() -> dict[str, str]:
    import platform

    from shoal import __version__
    from shoal.units.commit import commit

    own = {"version": __version__, "commit": commit(), "python": platform.python_version()}
    return {**own, "system": platform.platform()}


def _collect(cluster: Access, archive: BundleArchive, *, has_logs: bool) -> None:
    import random

    from shoal.cli.cluster_access import ended
    from shoal.cli.progress import long_work
    from shoal.client.clock import WallClock
    from shoal.client.http.api import KubeApi
    from shoal.client.http.connection import Connection
    from shoal.client.http.settings import KubeSettings
    from shoal.store.support_bundle.collecting import BundleSource

    settings = KubeSettings(timeout_s=_PATIENCE_S, keeps_managed_fields=False)

    async def work() -> None:
        api, connection = KubeApi(cluster, random.Random(), settings), Connection(cluster, settings)
        try:
            source = BundleSource(api, connection, archive)
            with long_work("collecting the bundle"):
                await source.collect()
                await _judge(api, connection, archive)
                await _snapshot(api, archive, WallClock())
                if has_logs:
                    await source.logs()
        finally:
            await connection.close()
            await api.close()

    ended(cluster, work)
    if has_logs:
        _local_log(cluster, archive)


async def _judge(api: Api, requests: Requests, archive: BundleArchive) -> None:
    """What `shoal doctor` and `shoal check` say, and what they read."""
    import msgspec

    from shoal.client.refusals import RefusedError
    from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster
    from shoal.policy.diagnosis.trees import diagnose, pods_with_logs
    from shoal.policy.diagnosis.verdicts import Patient
    from shoal.policy.readiness.checklist import needed_kinds, readiness
    from shoal.policy.readiness.outcomes import ReadinessFacts
    from shoal.store.diagnosed_objects import read_diagnosed_objects
    from shoal.store.pod_logs import LogBounds, logs_of
    from shoal.store.support_bundle.diagnosed_file import DIAGNOSED, diagnosed_file
    from shoal.store.support_bundle.secrets_in_text import value_without_secrets

    try:
        read = await read_diagnosed_objects(api, needed_kinds())
    except RefusedError as error:
        archive.leave_out("doctor.json", str(error))
        return
    facts = DiagnosedCluster(read.objects, read.complete, unread=read.unread)
    cluster = Patient("cluster")
    facts.logs.update(await logs_of(requests, pods_with_logs(facts, cluster), LogBounds(1 << 20, 5_000)))
    archive.add_json(DIAGNOSED, diagnosed_file(read, facts.logs))
    found = diagnose(facts, cluster)
    archive.add_json("doctor.json", value_without_secrets(msgspec.to_builtins(found)))
    report = readiness(ReadinessFacts(facts))
    archive.add_json("check.json", value_without_secrets(msgspec.to_builtins(report)))


async def _snapshot(api: Api, archive: BundleArchive, clock: Clock) -> None:
    """As `shoal snapshot` writes it, which leaves out everything confidential itself."""
    from shoal.client.refusals import RefusedError
    from shoal.store.snapshot.reading import QueueRuling, read_snapshot
    from shoal.units.errors import UserError

    try:
        picture = await read_snapshot(api, QueueRuling(), clock.now())
        archive.add("snapshot.json", picture.to_json())
    except (RefusedError, UserError) as error:
        archive.leave_out("snapshot.json", str(error))


def _local_log(cluster: Access, archive: BundleArchive) -> None:
    """The end of the log of `shoal up`, if the cluster is one of this machine."""
    from shoal.embedded.apiserver.security.state_folder import LOG, MARKER
    from shoal.store.support_bundle.secrets_in_text import without_secrets

    folder = cluster.file.parent if cluster.file is not None else None
    if folder is None or not (folder / MARKER).is_file() or not (folder / LOG).is_file():
        return
    with (folder / LOG).open("rb") as log:
        log.seek(max(0, (folder / LOG).stat().st_size - _MOST_OWN_LOG))
        data = log.read(_MOST_OWN_LOG)
    archive.add("logs/shoal-up.log", without_secrets(data.decode("utf-8", "replace")).encode())
