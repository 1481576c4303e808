"""The settings of EC2, and the clients that they give."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import msgspec

from shoal.units.errors import UserError, Where

_TIMEOUTS_S: Final = {"ec2": (10, 60), "sqs": (2, 4)}
"""To connect and to read. Notices are read in a pass that provisions nodes, so they must not hold it up."""


class Ec2Settings(msgspec.Struct, frozen=True):
    cluster: str
    region: str = ""
    endpoint: str = ""
    """Of another server than that of the region."""
    interruption_queue: str = ""
    """The name of the queue with the notices of EventBridge; without it, notices are not read."""


def ec2_client(settings: Ec2Settings) -> Any:
    """Raises UserError without the SDK or a region."""
    return _client(settings, "ec2")


def sqs_client(settings: Ec2Settings) -> Any:
    """The client of the queue with notices; None if none is named."""
    return _client(settings, "sqs") if settings.interruption_queue else None


def _client(settings: Ec2Settings, service: str) -> Any:
    """The client of the SDK, with the credentials that the SDK finds. Raises UserError without the SDK or a region."""
    try:
        sdk = import_module("boto3")
    except ImportError as error:
        fix = "install it with `pip install 'shoal[aws]'`"
        raise UserError("the SDK of AWS (boto3) is not installed", where=Where(path="--cloud"), fix=fix) from error
    # Who repeats a request, and when, is decided here: by client token, and as slowly as a throttled request needs.
    connect_s, read_s = _TIMEOUTS_S[service]
    retries = {"total_max_attempts": 1}
    config = import_module("botocore.config").Config(retries=retries, connect_timeout=connect_s, read_timeout=read_s)
    session = sdk.session.Session(region_name=settings.region or None)
    if session.region_name is None:
        raise UserError("the AWS region is not known", where=Where(path="--cloud-region"), fix="as in us-east-1")
    return session.client(service, config=config, endpoint_url=settings.endpoint or None)
