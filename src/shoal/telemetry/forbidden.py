"""Reports once what RBAC refuses: in one line of the log, and as an Event on the object that users look at.

A controller whose request is refused retries while it runs, and each retry is refused in the same way. The log names
the refused request, the missing rule and the command that grants it once.
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
    """`about`: the object that Events are recorded for, for example the Lease of this process."""

    def __init__(self, events: Recorder | None = None, about: Obj | None = None) -> None:
        self._events = events
        self._about = about
        self._reported: dict[_Asked, None] = {}
        self._unanswered_s = float("-inf")
        """When the server did not answer last."""

    def report(self, error: ForbiddenError, now_s: float = 0.0) -> bool:
        """Return whether it was reported now. The caller reports other refusals than RBAC's, such as a quota's.

        An API server that was just started refuses everything until it has read its roles. So nothing is reported in
        the first seconds after the server did not answer, only requests that are refused again later."""
        asked = (error.verb, error.group, error.resource or error.path, error.user)
        if not error.verb or asked in self._reported or len(self._reported) >= _MOST:
            return False
        if now_s < self._unanswered_s + _LASTS_S:
            return False
        self._reported[asked] = None
        words = advice_line(error)
        _log.warning("%s", words)
        if self._events is not None and self._about is not None:
            self._events.record(self._about, "Forbidden", words, type_="Warning")
        return True

    def allowed(self, verb: str, group: str, resource: str) -> None:
        """The request is allowed now. If it is refused again later, that is reported again."""
        for asked in [one for one in self._reported if one[:3] == (verb, group, resource)]:
            del self._reported[asked]

    def unanswered(self, now_s: float) -> None:
        """The server did not answer."""
        self._unanswered_s = now_s

    def __len__(self) -> int:
        """The number of reported requests that have not been allowed since."""
        return len(self._reported)


def advice_line(error: ForbiddenError) -> str:
    """The refused request, the missing rule, and the command that grants all that Shoal needs."""
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
