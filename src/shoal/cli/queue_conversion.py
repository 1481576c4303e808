"""Converts the queues of a set of manifests to those of another project, for `shoal queue convert`."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from shoal.api.decode import Document
from shoal.api.files import read_manifests
from shoal.api.kueue import ClusterQueue, Cohort, LocalQueue, ResourceFlavor
from shoal.api.yaml_out import to_yaml
from shoal.cli.manifest_errors import read_valid, report_errors
from shoal.engine.queues.conversion.kai_queues import from_kai, to_kai
from shoal.engine.queues.conversion.kueue_queues import KueueObjects, from_kueue, to_kueue
from shoal.engine.queues.conversion.model import Queues, Written
from shoal.engine.queues.conversion.volcano_queues import from_volcano, to_volcano
from shoal.sim.kai_queues import kai_queues
from shoal.sim.volcano_queues import volcano_tree
from shoal.units.errors import UserError, Where

KUEUE, KAI, VOLCANO = PROJECTS = ("kueue", "kai", "volcano")


def convert(paths: Sequence[str], project: str, namespace: str) -> None:
    """Print the objects of the other project as YAML, and on standard error what they do not express."""
    documents, _, errors = read_valid(lambda report: read_manifests(paths, report=report), lambda found: found)
    report_errors(errors)
    written = converted(documents, project, namespace, ", ".join(paths))
    for loss in dict.fromkeys(written.losses):
        typer.echo(f"warning: {loss}", err=True)
    typer.echo("---\n".join(to_yaml(each) for each in written.objects), nl=False)


def converted(documents: Sequence[Document], project: str, namespace: str, where: str) -> Written:
    found = {name: queues for name, queues in _read(documents).items() if queues.queues}
    if not found:
        raise UserError(
            "no queues of Kueue, KAI or Volcano found", where=Where(file=where), fix="name the files with the queues"
        )
    if len(found) > 1:
        named = " and ".join(found)
        raise UserError(f"queues of {named} found", where=Where(file=where), fix="give the queues of one project")
    ((source, queues),) = found.items()
    if source == project:
        raise UserError(f"the queues are those of {source} already", where=Where(path="--to"))
    written = {
        KUEUE: lambda: to_kueue(queues, namespace),
        KAI: lambda: to_kai(queues),
        VOLCANO: lambda: to_volcano(queues),
    }[project]()
    return Written(written.objects, [*queues.losses, *written.losses])


def _read(documents: Sequence[Document]) -> dict[str, Queues]:
    values = [document.value for document in documents]
    objects = KueueObjects(
        [each for each in values if isinstance(each, ClusterQueue)],
        [each for each in values if isinstance(each, Cohort)],
        [each for each in values if isinstance(each, ResourceFlavor)],
        [each for each in values if isinstance(each, LocalQueue)],
    )
    tree = volcano_tree(documents)
    return {
        KUEUE: from_kueue(objects),
        KAI: from_kai(kai_queues(documents).values()),
        VOLCANO: from_volcano(tree.queues.values() if tree is not None else ()),
    }
