"""Declares the options that kubectl has on every command that lists objects, with kubectl's names and meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from shoal.cli.completion_values import namespaces, one_of
from shoal.cli.named_nodes import Machines
from shoal.cli.object_source import Files

LIST_FORMATS = ("table", "wide", "name", "json", "yaml", "jsonpath=", "custom-columns=")

AllNamespaces = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="Objects of all namespaces; --namespace is ignored then.")
]
ListNamespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="Only objects of this namespace; by default that of the context, of files all.",
        autocompletion=namespaces,
    ),
]
Selector = Annotated[
    str, typer.Option("--selector", "-l", metavar="LABELS", help="Only objects with these labels: team=a,tier!=dev.")
]
FieldSelector = Annotated[
    str,
    typer.Option(
        "--field-selector",
        metavar="FIELDS",
        help="Only objects with these fields: status.phase=Running,spec.nodeName=x.",
    ),
]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="After the list, print each row that changes.")]
SortBy = Annotated[
    str, typer.Option("--sort-by", metavar="JSONPATH", help="The field to sort by: .gpus, .metadata.creationTimestamp.")
]
NoHeaders = Annotated[bool, typer.Option("--no-headers", help="Print tables without their headings.")]
ListOutput = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="FORMAT",
        help="table, wide, name, json, yaml, jsonpath=TEMPLATE, custom-columns=HEADING:PATH,...",
        autocompletion=one_of(LIST_FORMATS),
    ),
]


@dataclass(frozen=True, kw_only=True)
class ListOptions:
    filename: Files = None
    nodes: Machines = None
    namespace: ListNamespace = ""
    all_namespaces: AllNamespaces = False
    selector: Selector = ""
    field_selector: FieldSelector = ""
    watch: Watch = False
    output: ListOutput = LIST_FORMATS[0]
    sort_by: SortBy = ""
    no_headers: NoHeaders = False


@dataclass(frozen=True, kw_only=True)
class HolderScope:
    """Whose use of the nodes is listed; nodes have no namespace."""

    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            "-n",
            metavar="NAME",
            help="Only holders of this namespace; nodes are listed all the same.",
            autocompletion=namespaces,
        ),
    ] = ""
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Holders of all namespaces, which is the default.")
    ] = False

    def has(self, key: str) -> bool:
        return self.all_namespaces or not self.namespace or key.startswith(f"{self.namespace}/")
