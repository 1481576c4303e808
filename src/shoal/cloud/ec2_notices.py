"""Reads the notices that EventBridge puts into a queue before EC2 takes instances back, as Karpenter's queue gets them.

A message stays in the queue until its instance is gone, so a process that is killed after it read the notice gets it
again. Messages about other instances are removed once they are some minutes old, because EC2 lists a new instance with
a delay; those that are no notice are removed at once. A queue that cannot be read is reported, is asked again ever
later, and does not keep nodes from being provisioned.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from shoal.client.clock import Clock
from shoal.units.errors import ShoalError
from shoal.units.visible_text import visible

_log = logging.getLogger("shoal.nodes")
_SPOT: Final = "EC2 Spot Instance Interruption Warning"
_REBALANCE: Final = "EC2 Instance Rebalance Recommendation"
_STATE: Final = "EC2 Instance State-change Notification"
_HEALTH: Final = "AWS Health Event"
_WARNING_S: Final = 120.0
"""How long before the interruption EC2 gives notice."""
_ENDING: Final = frozenset({"stopping", "stopped", "shutting-down", "terminated"})
_EVERY_S: Final = 5.0
_LATEST_S: Final = 60.0
"""How long a queue that does not answer is left alone at most."""
_MOST_BATCHES: Final = 20
_BATCH: Final = 10
_LISTED_S: Final = 600.0
"""After which an instance that EC2 does not list is gone, or that of another cluster."""
_MOST_S: Final = 366 * 86400.0

Call = Callable[..., Awaitable[Any]]
"""Calls a function of the SDK with these arguments; raises errors of Shoal."""


class Notice(msgspec.Struct, frozen=True):
    instances: tuple[str, ...]
    at_s: float
    """When it was given, in seconds since 1970."""
    interrupted_s: float | None = None
    """When they are taken back, in seconds since 1970; None if that is only likely."""


class _Entity(msgspec.Struct, frozen=True, rename="camel"):
    entity_value: str = ""


class _Detail(msgspec.Struct, frozen=True, rename="camel"):
    instance_id: str = msgspec.field(name="instance-id", default="")
    state: str = ""
    service: str = ""
    event_type_category: str = ""
    start_time: str = ""
    affected_entities: tuple[_Entity, ...] = ()


class _Event(msgspec.Struct, frozen=True):
    time: datetime
    kind: str = msgspec.field(name="detail-type", default="")
    detail: _Detail = _Detail()


def notice_of(body: str) -> Notice | None:
    """What the message of the queue says; None if it is no notice about instances."""
    try:
        event = msgspec.json.decode(body, type=_Event)
    except msgspec.MsgspecError:
        return None
    if event.time.tzinfo is None:
        return None
    detail, time_s = event.detail, event.time.timestamp()
    named = (detail.instance_id,) if detail.instance_id else ()
    if event.kind == _HEALTH and (detail.service, detail.event_type_category) == ("EC2", "scheduledChange"):
        affected = tuple(each.entity_value for each in detail.affected_entities if each.entity_value)
        return Notice(affected, time_s, _start_s(detail.start_time, time_s)) if affected else None
    if not named:
        return None
    if event.kind == _SPOT:
        return Notice(named, time_s, time_s + _WARNING_S)
    if event.kind == _STATE and detail.state in _ENDING:
        return Notice(named, time_s, time_s)
    return Notice(named, time_s) if event.kind == _REBALANCE else None


def _start_s(text: str, time_s: float) -> float:
    """Of a scheduled change, at least two minutes after its notice."""
    try:
        start_s = parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        start_s = time_s
    return min(max(start_s, time_s + _WARNING_S), time_s + _MOST_S)


class _Message(NamedTuple):
    receipt: str
    """The newest one."""
    instances: frozenset[str]
    """Those of the cluster that it is about."""


class NoticeQueue:
    def __init__(self, client: Any, name: str, clock: Clock, call: Call) -> None:
        """`client`: the SQS client of boto3."""
        self._client = client
        self._name = name
        self._clock = clock
        self._call = call
        self._url = ""
        self._read_s = float("-inf")
        self._wait_s = _EVERY_S
        """Until the queue is read again."""
        self._known: dict[str, float] = {}
        self._messages: dict[str, _Message] = {}
        """Those that stay in the queue, by id."""
        self._unneeded: dict[str, str] = {}
        """The receipts of messages to remove, by id."""
        self._advised: set[str] = set()
        self._reported = ""

    async def interrupted(self, there: Collection[str]) -> Mapping[str, float]:
        """When instances are taken back, by their ids. `there`: the instances of the cluster that exist."""
        is_due = self._clock.seconds() - self._read_s >= self._wait_s
        self._forget(there)
        if not is_due and self._wait_s > _EVERY_S:
            # The queue did not answer: each request may take seconds, and the pass waits for it.
            return self._known
        try:
            if is_due:
                self._read_s = self._clock.seconds()
                await self._receive(there)
            await self._remove()
            self._wait_s, self._reported = _EVERY_S, ""
        except ShoalError as error:
            self._read_s = self._clock.seconds()
            self._wait_s = min(2 * self._wait_s, _LATEST_S)
            if str(error) != self._reported:
                self._reported = str(error)
                _log.warning("queue %s: notices of interruptions are not read: %s", self._name, error)
        return self._known

    async def _receive(self, there: Collection[str]) -> None:
        if not self._url:
            self._url = str((await self._call(self._client.get_queue_url, QueueName=self._name))["QueueUrl"])
        for _ in range(_MOST_BATCHES):
            found = await self._call(self._client.receive_message, QueueUrl=self._url, MaxNumberOfMessages=_BATCH)
            messages = found.get("Messages") or ()
            for each in messages:
                self._take(str(each["MessageId"]), str(each.get("Body") or ""), str(each["ReceiptHandle"]), there)
            if not messages:
                return
            await self._remove()

    def _take(self, id_: str, body: str, receipt: str, there: Collection[str]) -> None:
        notice = notice_of(body)
        own = [] if notice is None else [each for each in notice.instances if each in there]
        if notice is None or (not own and self._clock.seconds() - notice.at_s >= _LISTED_S):
            self._unneeded[id_] = receipt
        elif not own:
            # The queue shows it again when its visibility timeout is over.
            return
        elif notice.interrupted_s is None:
            if new := sorted(set(own) - self._advised):
                self._advised.update(new)
                _log.info("EC2 recommends to replace %s, which are likely to be interrupted", visible(", ".join(new)))
            self._unneeded[id_] = receipt
        else:
            for each in own:
                self._known[each] = min(notice.interrupted_s, self._known.get(each, notice.interrupted_s))
            self._messages[id_] = _Message(receipt, frozenset(own))

    def _forget(self, there: Collection[str]) -> None:
        """Instances that are gone, and their messages unless these name others that are there."""
        for id_ in [id_ for id_, each in self._messages.items() if each.instances.isdisjoint(there)]:
            self._unneeded[id_] = self._messages.pop(id_).receipt
        self._known = {each: at_s for each, at_s in self._known.items() if each in there}
        self._advised &= set(there)

    async def _remove(self) -> None:
        """A message that the queue keeps all the same is received again."""
        while self._unneeded:
            batch = dict(islice(self._unneeded.items(), _BATCH))
            entries = [{"Id": str(number), "ReceiptHandle": each} for number, each in enumerate(batch.values())]
            await self._call(self._client.delete_message_batch, QueueUrl=self._url, Entries=entries)
            for id_ in batch:
                del self._unneeded[id_]
