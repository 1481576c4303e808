"""Asks Amazon SQS for the messages of a queue."""

from __future__ import annotations

from datetime import UTC, datetime

from shoal.autoscale.scaled_objects.sqs_trigger import (
    count_request,
    is_named_by_url,
    message_count,
    queue_url,
    url_request,
)
from shoal.autoscale.scaled_objects.trigger_sources import SqsQueue
from shoal.controllers.scaled_objects.sources.http import HttpSource


async def message_total(http: HttpSource, asked: SqsQueue, now: datetime) -> float:
    """Raises AnswerError or TemporaryError."""
    now = now.astimezone(UTC)
    url = asked.queue
    if not is_named_by_url(asked):
        url = queue_url(await http.get(url_request(asked, now)))
    return message_count(await http.get(count_request(asked, url, now)), asked)
