"""Reads the manifests that a command names with `-f`: all valid objects, and the machines of `--nodes` as nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from shoal.api.decode import Document
from shoal.api.files import read_manifests
from shoal.cli.manifest_errors import read_valid, report_errors
from shoal.cli.manifests import Loaded, loaded_of
from shoal.cli.named_nodes import check_machines, with_machines
from shoal.cli.progress import long_work, terminal_step
from shoal.store.inventory import Inventory
from shoal.store.queues import read_queue_manifests

_READING = "reading the manifests"


def loaded_manifests(
    paths: Sequence[str],
    nodes: Sequence[str] | None = None,
    load: Callable[[Sequence[Document]], Loaded] = loaded_of,
) -> tuple[list[Document], Loaded]:
    """The valid objects and the cluster that they describe; stderr names the others, which `Loaded` lists."""
    check_machines(nodes, paths)
    with long_work(_READING, terminal_step):
        documents, loaded, errors = read_valid(
            lambda report: with_machines(read_manifests(paths, report=report), nodes), load
        )
    report_errors(errors)
    return documents, replace(loaded, errors=errors)


def queue_manifests(paths: Sequence[str], nodes: Sequence[str] | None = None) -> list[Document]:
    """The objects that are valid for readers of queues, who do not judge pods; stderr names the others."""
    check_machines(nodes, paths)
    with long_work(_READING, terminal_step):
        documents, _, errors = read_valid(
            lambda report: with_machines(read_manifests(paths, report=report), nodes),
            lambda found: read_queue_manifests(Inventory(found)),
        )
    report_errors(errors)
    return documents
