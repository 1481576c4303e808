"""The trigger kafka: its settings, and how far a consumer group is behind, from the offsets of its partitions.

By default the demand is limited to one replica per partition, because further consumers of a group would be idle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from shoal.autoscale.scaled_objects.metric_names import indexed_name
from shoal.autoscale.scaled_objects.spec import Trigger
from shoal.autoscale.scaled_objects.trigger_metadata import TriggerError, TriggerMetadata, host_and_port
from shoal.autoscale.scaled_objects.trigger_sources import (
    Bounds,
    KafkaLag,
    KafkaServers,
    ReadTrigger,
    external_trigger,
)
from shoal.autoscale.scaled_objects.trigger_tls import is_tls_enabled, server_tls

_MECHANISMS = {"none": "", "plaintext": "PLAIN", "scram_sha256": "SCRAM-SHA-256", "scram_sha512": "SCRAM-SHA-512"}
_OTHER_MECHANISMS = ("gssapi", "oauthbearer")
_MOST_PARTITIONS = 1_000_000
NO_OFFSET = -1
"""The offset of a partition for which a group has committed none."""
Partition = tuple[str, int]
"""Topic and number."""


def kafka(trigger: Trigger, metadata: TriggerMetadata, index: int, _namespace: str) -> ReadTrigger:
    group, topic = metadata.any_text("consumerGroup"), metadata.any_text("topic", "")
    threshold, activation = metadata.positive("lagThreshold", 10.0), metadata.number("activationLagThreshold", 0.0)
    if activation < 0:
        raise TriggerError('"activationLagThreshold" must not be negative')
    policy = metadata.text("offsetResetPolicy", "latest")
    if policy not in ("latest", "earliest"):
        raise TriggerError(f'err offsetResetPolicy "{policy}" given; write latest or earliest')
    source = KafkaLag(
        _servers(metadata),
        group,
        topic,
        threshold,
        _ranges(metadata.text("partitionLimitation", "")),
        policy == "earliest",
        metadata.flag("allowIdleConsumers", usual=False),
        metadata.flag("scaleToZeroOnInvalidOffset", usual=False),
        metadata.flag("excludePersistentLag", usual=False),
        metadata.flag("limitToPartitionsWithLag", usual=False),
        metadata.flag("ensureEvenDistributionOfPartitions", usual=False),
    )
    if source.allows_idle and source.is_limited_to_lagging:
        raise TriggerError("allowIdleConsumers and limitToPartitionsWithLag cannot be set simultaneously")
    for name, needs_topic in (
        ("limitToPartitionsWithLag", source.is_limited_to_lagging),
        ("ensureEvenDistributionOfPartitions", source.is_even),
        ("partitionLimitation", bool(source.partitions)),
    ):
        if needs_topic and not topic:
            raise TriggerError(f"topic must be specified when using {name}")
    name = f"kafka-{topic}" if topic else f"kafka-{group}-topics"
    return external_trigger(trigger, index, indexed_name(index, name), source, Bounds(threshold, activation))


def _servers(metadata: TriggerMetadata) -> KafkaServers:
    addresses = tuple(host_and_port(one) for one in metadata.any_text("bootstrapServers").split(",") if one.strip())
    if not addresses:
        raise TriggerError('parameter "bootstrapServers" names no server')
    named = metadata.any_text("sasl", "none")
    if named in _OTHER_MECHANISMS:
        raise TriggerError(f'sasl "{named}" is not supported; use plaintext, scram_sha256 or scram_sha512')
    if named not in _MECHANISMS:
        raise TriggerError(f'err sasl mode "{named}" given; must be one of {", ".join(_MECHANISMS)}')
    tls = server_tls(metadata) if is_tls_enabled(metadata) else None
    if named == "none":
        return KafkaServers(addresses, tls)
    return KafkaServers(addresses, tls, _MECHANISMS[named], metadata.secret("username"), metadata.secret("password"))


def _ranges(text: str) -> tuple[tuple[int, int], ...]:
    """`1,2,10-20`."""
    found = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        first, _, last = part.partition("-")
        first, last = first.strip(), last.strip() or first.strip()
        if not (first.isdecimal() and last.isdecimal()) or len(first) > 9 or len(last) > 9 or int(first) > int(last):
            raise TriggerError(f'error parsing partitionLimitation: "{part}" is neither a number nor a range x-y')
        found.append((int(first), int(last)))
    return tuple(found)


# -- the lag --------------------------------------------------------------------------------------------------------


class PartitionOffsets(Struct, frozen=True):
    committed: int
    """Or NO_OFFSET."""
    end: int


class FoundLag(Struct, frozen=True):
    value: float
    """What the autoscaler reads."""
    is_above: float
    """What is compared with the activation value: the lag before any limit."""


def counts(asked: KafkaLag, partition: int) -> bool:
    return not asked.partitions or any(first <= partition <= last for first, last in asked.partitions)


def found_lag(
    asked: KafkaLag, offsets: Mapping[Partition, PartitionOffsets], before: Mapping[Partition, int]
) -> FoundLag:
    """`before`: the committed offsets of the previous poll, for lag that nothing consumes."""
    lags = {partition: _lag(asked, one) for partition, one in offsets.items()}
    moving = {
        partition: 0 if asked.excludes_persistent and _is_persistent(offsets[partition], before.get(partition)) else lag
        for partition, lag in lags.items()
    }
    total = float(sum(moving.values()))
    return FoundLag(_limited(asked, total, list(moving.values())), float(sum(lags.values())))


def _lag(asked: KafkaLag, one: PartitionOffsets) -> int:
    if one.committed == NO_OFFSET:
        if asked.is_zero_without_offset:
            return 0
        # A new group that reads from the end needs one consumer to commit its first offset.
        return one.end if asked.resets_to_earliest else 1
    return max(one.end - one.committed, 0)


def _is_persistent(one: PartitionOffsets, before: int | None) -> bool:
    return one.committed != NO_OFFSET and one.committed == before


def _limited(asked: KafkaLag, total: float, lags: Sequence[int]) -> float:
    if asked.allows_idle and not asked.is_even:
        return total
    most = sum(lag > 0 for lag in lags) if asked.is_limited_to_lagging else len(lags)
    if asked.is_even and lags:
        most = _even(math.ceil(total / asked.threshold), len(lags))
        return most * asked.threshold if total > 0 else 0.0
    return min(total, most * asked.threshold)


def _even(wanted: int, partitions: int) -> int:
    """The smallest count of consumers, at least as many as wanted, that divides the partitions evenly."""
    for count in range(max(wanted, 1), min(partitions, _MOST_PARTITIONS)):
        if partitions % count == 0:
            return count
    return partitions
