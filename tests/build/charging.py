"""Quotas and writes that are charged to them: `charged(world(quota({"pods": "1"})), creating(pod("a")))`."""

from __future__ import annotations

import pytest

from build.cluster_reader import FakeReader, Obj, named
from shoal.embedded.apiserver.admission.quota.plugin import Quota
from shoal.embedded.apiserver.admission.quota.usage_arithmetic import QuotaCharge
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.status import ApiError


def quota(hard: dict[str, str], name: str = "q", **spec: object) -> Obj:
    return named("ResourceQuota", name, spec={"hard": hard, **spec})


def _store(reader: FakeReader, charge: QuotaCharge) -> None:
    old = reader.get("", "resourcequotas", charge.ref.namespace, charge.ref.name)
    assert old is not None
    reader.put({**old, "status": {"hard": old["spec"]["hard"], "used": charge.used}})


def charged(reader: FakeReader, write: AdmissionAttributes, *, gone: bool = False) -> dict[str, str]:
    """What is used of the one quota after a write that is let in and stored."""
    for charge in Quota(reader).charges(write, gone=gone):
        _store(reader, charge)
    if gone:
        reader.drop(write.old or {})
    elif write.obj is not None:
        reader.put(write.obj)
    found = reader.get("", "resourcequotas", "ml", "q")
    assert found is not None
    used: dict[str, str] = (found.get("status") or {}).get("used", {})
    return used


def refused(reader: FakeReader, write: AdmissionAttributes) -> str:
    with pytest.raises(ApiError) as caught:
        Quota(reader).charges(write)
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    return caught.value.message
