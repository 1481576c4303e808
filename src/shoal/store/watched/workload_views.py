"""Decodes a Workload to its view: the fields that decisions read, without its templates."""

from __future__ import annotations

from shoal.api.kueue import Workload
from shoal.client.item import Item
from shoal.client.kind import Kind
from shoal.engine.from_api.queues import WorkloadReader, is_finished, ran_s
from shoal.store.object_faults import message_of
from shoal.store.watched.queue_changes import Mark, WorkloadView
from shoal.store.watched.reading import value_of
from shoal.units.errors import UserError


def key_of(item: Item) -> str:
    return f"{item.namespace}/{item.name}"


def sight_of(kind: Kind, item: Item, reader: WorkloadReader) -> WorkloadView:
    """An unreadable Workload has a view too, so that its fault can be reported."""
    try:
        workload = value_of(kind, item, Workload)
    except UserError as error:
        return WorkloadView(key_of(item), item.uid, item.version, 0, fault=message_of(error))
    try:
        facts = reader.of_object(workload)
        fault = ""
    except UserError as error:
        facts, fault = None, message_of(error)
    meta = workload.metadata
    controller = meta.controller()
    has_ended = is_finished(workload)
    if has_ended and facts is not None and ran_s(workload) is None:
        facts = None
    return WorkloadView(
        key=key_of(item),
        uid=item.uid,
        version=item.version,
        generation=meta.generation,
        facts=facts,
        fault="" if has_ended else fault,
        queue=f"{meta.namespace}/{workload.spec.queue_name}" if workload.spec.queue_name else "",
        is_finished=has_ended,
        is_terminating=meta.deletion_timestamp is not None,
        ran_s=ran_s(workload) if has_ended else None,
        marks=_marks(workload),
        owner=(controller.kind, controller.name) if controller is not None else ("", ""),
    )


def _marks(workload: Workload) -> dict[str, Mark]:
    return {
        one.type: Mark(
            one.status == "True",
            one.reason,
            one.message,
            0.0 if one.last_transition_time is None else one.last_transition_time.timestamp(),
        )
        for one in workload.status.conditions
    }
