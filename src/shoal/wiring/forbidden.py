"""What RBAC refuses is said once: one clear line in the log, and an Event where people look for Shoal.

A controller that is refused retries for as long as it runs, and each retry is refused in the same way. The log names
once what is not allowed, the missing rule and how to grant it.
"""

from __future__ import annotations

import json
import logging

from shoal.client.item import Obj
from shoal.client.recorder import Recorder
from shoal.client.refusals import ForbiddenError

_log = logging.getLogger("shoal")
_MOST = 1000
_LASTS_S = 15.0
_Asked = tuple[str, str, str, str]
"""Verb, group, resource or path, and user."""


class ForbiddenReporter:
    """`about`: the object that Events are recorded for, the lease of this process say."""

    def __init__(self, events: Recorder | None = None, about: Obj | None = None) -> None:
        self._events = events
        self._about = about
        self._told: dict[_Asked, None] = {}
        self._unanswered_s = float("-inf")
        """When the server did not answer last."""

    def tell(self, error: ForbiddenError, now_s: float = 0.0) -> bool:
        """Whether it was reported now. Refusals other than RBAC's (a quota, for example) are reported by the caller.

        An API server that was just started refuses everything until it has read its roles. So nothing is reported in
        the first seconds after the server did not answer; what is asked again and refused later is."""
        asked = (error.verb, error.group, error.resource or error.path, error.user)
        if not error.verb or asked in self._told or len(self._told) >= _MOST:
            return False
        if now_s < self._unanswered_s + _LASTS_S:
            return False
        self._told[asked] = None
        words = advice_line(error)
        _log.warning("%s", words)
        if self._events is not None and self._about is not None:
            self._events.record(self._about, "Forbidden", words, type_="Warning")
        return True

    def allowed(self, verb: str, group: str, resource: str) -> None:
        """It is allowed by now; should it be taken away again, that is news again."""
        for asked in [one for one in self._told if one[:3] == (verb, group, resource)]:
            del self._told[asked]

    def unanswered(self, now_s: float) -> None:
        """The server did not answer."""
        self._unanswered_s = now_s

    def __len__(self) -> int:
        """How many are told and were not allowed since."""
        return len(self._told)


def advice_line(error: ForbiddenError) -> str:
    """What is not allowed, the rule that lacks, and the command that grants all that Shoal needs."""
    if error.path:
        what = error.path
        rule = f"{{nonResourceURLs: {json.dumps([error.path])}, verbs: {json.dumps([error.verb])}}}"
    else:
        what = f"{error.resource}.{error.group}" if error.group else error.resource
        rule = (
            f"{{apiGroups: {json.dumps([error.group])}, resources: {json.dumps([error.resource])}, "
            f"verbs: {json.dumps([error.verb])}}}"
        )
    where = f" in namespace {error.namespace}" if error.namespace else ""
    return (
        f"RBAC does not let {error.user} {error.verb} {what}{where}: the missing rule is {rule}; "
        "all that shoal run needs: shoal permissions | kubectl apply -f -"
    )
