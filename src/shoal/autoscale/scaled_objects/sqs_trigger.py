"""The trigger aws-sqs-queue: its settings, the signed request, and the count in its answer.

The request is that of Amazon's JSON protocol with Signature Version 4. Rejected: Amazon's Python SDK, which resolves
and asks addresses by itself, so that a trigger could ask addresses of the host.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct, field

from shoal.autoscale.scaled_objects.answers import AnswerError
from shoal.autoscale.scaled_objects.metric_names import indexed_name
from shoal.autoscale.scaled_objects.spec import Trigger
from shoal.autoscale.scaled_objects.trigger_metadata import TriggerError, TriggerMetadata
from shoal.autoscale.scaled_objects.trigger_sources import (
    AwsCredentials,
    Bounds,
    HttpRequest,
    ReadTrigger,
    SqsQueue,
    external_trigger,
)

_VISIBLE, _IN_FLIGHT, _DELAYED = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
_ALGORITHM = "AWS4-HMAC-SHA256"


def sqs_queue(trigger: Trigger, metadata: TriggerMetadata, index: int, _namespace: str) -> ReadTrigger:
    queue, region = metadata.any_text("queueURL"), metadata.any_text("awsRegion")
    if not all(part.isalnum() for part in region.split("-")):
        raise TriggerError(f'parameter "awsRegion" value "{region}" is not a region')
    if metadata.parameters.get("awsRoleArn"):
        raise TriggerError(
            'parameter "awsRoleArn" is not supported: write awsAccessKeyID and awsSecretAccessKey in the authentication'
        )
    endpoint = metadata.text("awsEndpoint", "") or _endpoint(queue, region)
    if not endpoint.startswith(("http://", "https://")):
        raise TriggerError(f'"{endpoint}" is not an address: write http://HOST:PORT or https://HOST:PORT')
    credentials = AwsCredentials(
        metadata.secret("awsAccessKeyID"),
        metadata.secret("awsSecretAccessKey"),
        metadata.optional_secret("awsSessionToken"),
    )
    source = SqsQueue(
        endpoint.rstrip("/"),
        queue,
        region,
        credentials,
        metadata.flag("scaleOnInFlight", usual=True),
        metadata.flag("scaleOnDelayed", usual=False),
    )
    bounds = Bounds(metadata.positive("queueLength", 5.0), metadata.number("activationQueueLength", 0.0))
    name = indexed_name(index, f"aws-sqs-{queue.rpartition('/')[2]}")
    return external_trigger(trigger, index, name, source, bounds)


def _endpoint(queue: str, region: str) -> str:
    """Of the queue's own URL, else of the region."""
    parts = urlsplit(queue)
    if parts.scheme in ("http", "https") and parts.netloc:
        return f"{parts.scheme}://{parts.netloc}"
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"https://sqs.{region}.{suffix}"


def is_named_by_url(asked: SqsQueue) -> bool:
    return asked.queue.startswith(("http://", "https://"))


def url_request(asked: SqsQueue, now: datetime) -> HttpRequest:
    """For the URL of a queue that has only a name."""
    return _signed(asked, "GetQueueUrl", {"QueueName": asked.queue}, now)


def count_request(asked: SqsQueue, url: str, now: datetime) -> HttpRequest:
    return _signed(asked, "GetQueueAttributes", {"QueueUrl": url, "AttributeNames": _attributes(asked)}, now)


def _attributes(asked: SqsQueue) -> list[str]:
    return [
        _VISIBLE,
        *([_IN_FLIGHT] if asked.counts_in_flight else ()),
        *([_DELAYED] if asked.counts_delayed else ()),
    ]


class _Answer(Struct, frozen=True, rename="pascal"):
    queue_url: str = ""
    attributes: dict[str, str] = field(default_factory=dict)


def queue_url(body: bytes) -> str:
    return _answer(body).queue_url


def message_count(body: bytes, asked: SqsQueue) -> float:
    found = _answer(body).attributes
    try:
        return float(sum(int(found[name]) for name in _attributes(asked)))
    except (KeyError, ValueError):
        raise AnswerError("the answer of aws-sqs-queue has no count of messages") from None


def _answer(body: bytes) -> _Answer:
    try:
        return msgspec.json.decode(body, type=_Answer)
    except msgspec.DecodeError as error:
        raise AnswerError(f"the answer of aws-sqs-queue cannot be read: {error}") from None


# -- Signature Version 4 --------------------------------------------------------------------------------------------


def _signed(asked: SqsQueue, action: str, fields: Mapping[str, object], now: datetime) -> HttpRequest:
    body = msgspec.json.encode(fields)
    parts = urlsplit(asked.endpoint)
    headers = {
        "content-type": "application/x-amz-json-1.0",
        "host": parts.netloc,
        "x-amz-date": now.strftime("%Y%m%dT%H%M%SZ"),
        "x-amz-target": f"AmazonSQS.{action}",
    }
    if asked.credentials.token:
        headers["x-amz-security-token"] = asked.credentials.token
    path = parts.path or "/"
    headers["authorization"] = signature(asked.credentials, (asked.region, "sqs"), path, headers, body)
    return HttpRequest(f"{parts.scheme}://{parts.netloc}{path}", headers=headers, body=body)


def signature(
    credentials: AwsCredentials, scope: tuple[str, str], path: str, headers: Mapping[str, str], body: bytes
) -> str:
    """The header Authorization of a POST request without a query. `scope`: region and service; `headers`: all of them
    are signed, with names in lower case."""
    moment = headers["x-amz-date"]
    names = ";".join(sorted(headers))
    lines = [f"{name}:{' '.join(headers[name].split())}" for name in sorted(headers)]
    canonical = "\n".join(["POST", quote(path), "", *lines, "", names, hashlib.sha256(body).hexdigest()])
    steps = (moment[:8], *scope, "aws4_request")
    to_sign = "\n".join([_ALGORITHM, moment, "/".join(steps), hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{credentials.secret}".encode()
    for step in (*steps, to_sign):
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    return (
        f"{_ALGORITHM} Credential={credentials.key_id}/{'/'.join(steps)}, SignedHeaders={names}, Signature={key.hex()}"
    )
