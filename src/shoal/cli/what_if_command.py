"""Implements `shoal what-if`: prints what a proposal would change, as the page of `shoal web` shows it.

Guarantees: nothing is changed; with `-o json` or `-o yaml` standard output holds one document and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from shoal.cli.cluster_access import AccessOptions
from shoal.cli.completion_values import one_of
from shoal.cli.formats import FOR_PROGRAMS, TABLES, TableOutput, checked
from shoal.cli.object_source import Files
from shoal.cli.option_groups import with_options
from shoal.units.errors import UserError, Where, excerpt


@dataclass(frozen=True, kw_only=True)
class WhatIfOptions:
    quota: Annotated[
        str,
        typer.Option(
            metavar="QUEUE/FLAVOR/RESOURCE=N", help="Another nominal quota, such as gold/h100/nvidia.com/gpu=16."
        ),
    ] = ""
    add_nodes: Annotated[
        str, typer.Option(metavar="FLEET", help="More nodes, as for `shoal up`: 2xp5.48xlarge,1xdgx-a100-80.")
    ] = ""
    queue_policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUEUE:FIELD=VALUE",
            help="Another queueingStrategy, preemption.withinClusterQueue, preemption.reclaimWithinCohort or "
            "fairSharing.weight of a ClusterQueue; may be given several times.",
        ),
    ] = None
    fair_sharing: Annotated[
        str, typer.Option(metavar="on|off", help="Kueue's fair sharing.", autocompletion=one_of(("on", "off")))
    ] = ""
    placement: Annotated[str, typer.Option(metavar="NAME", help="The policy that places pods; see `shoal pack`.")] = ""
    discipline: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Whose queues decide: kueue, fairshare (KAI) or volcano.",
            autocompletion=one_of(("kueue", "fairshare", "volcano")),
        ),
    ] = ""
    filename: Files = None
    output: TableOutput = TABLES[0]


@with_options
def what_if(options: WhatIfOptions, access: AccessOptions) -> None:
    """Tell who would start, stop or wait longer with another quota, more nodes or another policy.

    Reads the cluster, or manifests with -f. Both states are decided with the code that schedules; nothing is changed.
    """
    checked(options.output, TABLES)
    from shoal.cli.addressed_commands import cluster_flags, with_flags
    from shoal.cli.object_source import source_from
    from shoal.cli.progress import long_work, terminal_step
    from shoal.cli.what_if import what_if as answer_to
    from shoal.views.what_if import Proposal, QueuePolicyChange

    queue, flavor, resource, amount = _quota(options.quota)
    policies = tuple(QueuePolicyChange(*_policy(one)) for one in options.queue_policy or ())
    proposal = Proposal(
        queue,
        flavor,
        resource,
        amount,
        options.add_nodes,
        policies,
        options.fair_sharing,
        options.placement,
        options.discipline,
    )
    if proposal.is_empty:
        raise UserError(
            "nothing is proposed",
            where=Where(path="shoal what-if"),
            fix="add --quota, --add-nodes, --queue-policy, --fair-sharing, --placement or --discipline",
        )
    source = source_from(options.filename, access)
    with long_work("deciding for both", terminal_step):
        answer = answer_to(source, proposal)
    if source.access is not None:
        from msgspec import structs

        flags = cluster_flags(access, source.access)
        answer = structs.replace(answer, commands=[with_flags(one, flags) for one in answer.commands])
    if options.output in FOR_PROGRAMS:
        from shoal.cli.formats import write

        write(answer, options.output, source.cluster)
        return
    from shoal.cli.formats import console
    from shoal.views.what_if_text import show_answer

    show_answer(console(), answer)


def _quota(text: str) -> tuple[str, str, str, str]:
    """Queue, flavor, resource, whose name may have a slash, and amount."""
    if not text:
        return "", "", "", ""
    name, equals, amount = text.rpartition("=")
    parts = name.split("/", 2)
    if not (equals and amount and len(parts) == 3 and all(parts)):
        raise UserError(
            f"{excerpt(text)} is no quota",
            where=Where(path="--quota"),
            fix="write QUEUE/FLAVOR/RESOURCE=N, as in gold/h100/nvidia.com/gpu=16",
        )
    return parts[0], parts[1], parts[2], amount


def _policy(text: str) -> tuple[str, str, str]:
    """Queue, field and value."""
    name, equals, value = text.partition("=")
    queue, colon, field = name.partition(":")
    if not (equals and colon and queue and field and value):
        raise UserError(
            f"{excerpt(text)} is no policy of a queue",
            where=Where(path="--queue-policy"),
            fix="write QUEUE:FIELD=VALUE, as in gold:queueingStrategy=StrictFIFO",
        )
    return queue, field, value
