"""Determines whether an update of a pod can change its Pod Security evaluation.

Of a running pod only images and annotations can change, and containers can be added for debugging. A pod that was let
in under older labels keeps being updated; else a stricter label would stop kubelets from reporting.
"""

from __future__ import annotations

from shoal.embedded.apiserver.admission.pod_security.profiles import SECCOMP_CONTAINER, SECCOMP_POD
from shoal.embedded.apiserver.reading import Obj


def is_significant(new: Obj, old: Obj) -> bool:
    marks, old_marks = _annotations(new), _annotations(old)
    if marks.get(SECCOMP_POD) != old_marks.get(SECCOMP_POD):
        return True
    for field in ("initContainers", "containers"):
        if len(new["spec"].get(field) or ()) != len(old["spec"].get(field) or ()):
            return True
    before = _images(old)
    for key, image in _images(new).items():
        if before.get(key) != image:
            return True
        mark = SECCOMP_CONTAINER + key[1]
        if marks.get(mark) != old_marks.get(mark):
            return True
    return False


def _annotations(pod: Obj) -> Obj:
    return pod["metadata"].get("annotations") or {}


def _images(pod: Obj) -> dict[tuple[str, str], str]:
    return {
        (field, container.get("name", "")): container.get("image", "")
        for field in ("initContainers", "containers", "ephemeralContainers")
        for container in pod["spec"].get(field) or ()
    }
