"""The parts of the server that webhooks and policies need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.catalog import ResourceCatalog
from shoal.embedded.apiserver.dynamic.posting import Posting
from shoal.embedded.apiserver.dynamic.versions import Convert
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.request_info import RequestInfo


class ConfiguredAdmissionContext(msgspec.Struct, frozen=True):
    """What configured policies and webhooks need of the server."""

    catalog: ResourceCatalog
    reader: Reader
    posting: Posting
    convert: Convert
    allows: Callable[[Actor, RequestInfo], Any]
    """Authorizes; the result has `allowed` and `reason`."""
    new_uid: Callable[[], str]
