"""Namespaces with Pod Security labels and pods that are hardened or not."""

from __future__ import annotations

from typing import Any

import pytest

from build.cluster_reader import FakeReader, Obj, container, creating, world
from shoal.embedded.apiserver.admission.chain import builtin_plugins
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.status import ApiError

PREFIX = "pod-security.kubernetes.io/"
HARDENED = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def labelled(**modes: str) -> FakeReader:
    return world(labels={PREFIX + mode.replace("_", "-"): level for mode, level in modes.items()})


def validated(reader: FakeReader, write: AdmissionAttributes) -> list[str]:
    """The warnings of a write that passes."""
    builtin_plugins(reader).validate(write)
    return write.call.warnings


def refused(reader: FakeReader, made: Obj) -> str:
    with pytest.raises(ApiError) as caught:
        validated(reader, creating(ours(made)))
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    return caught.value.message


def ours(made: Obj) -> Obj:
    made["spec"].setdefault("serviceAccountName", "default")
    return made


def hardened(name: str = "c", **security: Any) -> Obj:
    return container(name, securityContext={**HARDENED, **security})
