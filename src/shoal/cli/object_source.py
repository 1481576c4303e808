"""Reads the objects that a command works on: from files, or from a live cluster into the same documents.

Guarantees: a cluster and its snapshot give the same answer, because both go through the same readers. One invalid
object among thousands does not stop a command: it is named on stderr and ignored. An invalid object of a file is also
an error: the command answers for the other objects, and ends with the exit code for wrong input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from shoal.cli.cluster_access import AccessOptions, announce, named, speak
from shoal.cli.completion_values import namespaces
from shoal.cli.exit_codes import FAILED
from shoal.cli.named_nodes import check_machines
from shoal.cli.progress import long_work
from shoal.units.errors import UserError, one_line
from shoal.units.visible_text import visible

if TYPE_CHECKING:
    from shoal.api.decode import Document
    from shoal.cli.manifests import Loaded
    from shoal.client.http.access import Access
    from shoal.client.port import Api
    from shoal.store.snapshot.reading import QueueRuling, Snapshot

T = TypeVar("T")
_MOST_LEFT_OUT = 50
"""Each costs a reading of everything; a cluster with more has to be corrected first."""

Files = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--filename",
        metavar="PATH",
        help="Instead of a cluster: a file of manifests, a folder, or - for stdin; may be given several times.",
    ),
]
Namespace = Annotated[
    str,
    typer.Option(
        "-n",
        "--namespace",
        metavar="NAME",
        help="The namespace of the names; by default that of the context.",
        autocompletion=namespaces,
    ),
]


@dataclass(frozen=True, slots=True)
class Source:
    """What was read."""

    documents: Sequence[Document]
    namespace: str = ""
    """Where a bare name is looked for first; empty: everywhere alike."""
    words: str = "the manifests"
    loaded: Loaded | None = None
    """As it is decided about without further options, where that is known already. To be used once."""
    notes: Sequence[str] = ()
    """What had to be left out."""
    access: Access | None = None
    """The cluster; None for files."""

    @property
    def cluster(self) -> str:
        """The name and the address of the cluster, for headings and documents; empty for files."""
        return "" if self.access is None else named(self.access)

    def in_namespace(self, namespace: str) -> Source:
        """The same, where bare names are looked for in this namespace first; empty: as it is."""
        return replace(self, namespace=namespace or self.namespace)

    def taken(self) -> Loaded:
        """Ready for its first round."""
        from shoal.cli.manifests import loaded_of

        return self.loaded or loaded_of(self.documents)


def source_from(
    filename: Sequence[str] | None,
    access: AccessOptions,
    namespace: str = "",
    *,
    nodes: Sequence[str] | None = None,
    complains: bool = True,
    reads_pods: bool = True,
) -> Source:
    """The files if any are given, with these machines as nodes, else the cluster, whose name is printed on stderr.

    `complains`: what is left out of the cluster is said on stderr. `reads_pods`: pods of files are judged too, and not
    queues alone.
    """
    if filename:
        from shoal.cli.manifest_source import loaded_manifests, queue_manifests

        if not reads_pods:
            return Source(queue_manifests(filename, nodes), namespace)
        documents, loaded = loaded_manifests(filename, nodes)
        return Source(documents, namespace, loaded=loaded)
    check_machines(nodes, filename)
    cluster = access.access()
    announce(cluster)
    snapshot, loaded = taken(cluster, complains=complains)
    documents = [entry.document for entry in snapshot.entries]
    return Source(documents, namespace or cluster.namespace, cluster.where, loaded, snapshot.notes, cluster)


def taken(access: Access, *, complains: bool = True, ruling: QueueRuling | None = None) -> tuple[Snapshot, Loaded]:
    """A picture of the cluster that every command can read; what had to be left out of it is in its notes."""
    from shoal.cli.invalid_objects import shortened

    found = speak(access, lambda api: read_picture(api, access, ruling))
    if complains:
        complain(shortened(found[0].notes))
    return found


async def read_picture(api: Api, access: Access, ruling: QueueRuling | None = None) -> tuple[Snapshot, Loaded]:
    from shoal.cli.manifests import loaded_of
    from shoal.client.clock import WallClock
    from shoal.client.rbac_advice import rbac_advice
    from shoal.client.refusals import ForbiddenError
    from shoal.store.snapshot.reading import QueueRuling, read_snapshot

    try:
        with long_work(f"reading the cluster {access.name or access.server}"):
            snapshot = await read_snapshot(api, ruling or QueueRuling(), WallClock().now())
    except ForbiddenError as error:
        lines = "\n".join(part for part in (f"shoal: {access.where}: {error}", rbac_advice(error)) if part)
        typer.echo(visible(lines, keeps_blanks=True), err=True)
        raise typer.Exit(FAILED) from None
    return sound(snapshot, loaded_of)


def sound(snapshot: Snapshot, load: Callable[[Sequence[Document]], T]) -> tuple[Snapshot, T]:
    """Without the objects for which it cannot be loaded: those that contradict others, not themselves."""
    from shoal.cli.invalid_objects import note_of

    for _ in range(_MOST_LEFT_OUT):
        try:
            loaded = load([entry.document for entry in snapshot.entries])
        except UserError as error:
            left = snapshot.without(error.where.obj)
            if len(left.entries) == len(snapshot.entries):
                raise
            snapshot = left
            path = f"{error.where.path}: " if error.where.path else ""
            # Other advice is about files, to which objects can be added.
            meant = f"; {error.fix}" if error.fix.startswith("did you mean") else ""
            snapshot.notes.append(note_of(error.where.obj, one_line(f"{path}{error.what}{meant}")))
        else:
            return snapshot, loaded
    raise UserError(
        f"more than {_MOST_LEFT_OUT} objects of the cluster contradict others", fix="correct the objects that are named"
    )


def complain(notes: Sequence[str]) -> None:
    for note in notes:
        typer.echo(f"shoal: warning: {one_line(note)}", err=True)
