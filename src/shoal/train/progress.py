"""Reports the progress of a training run to the scheduler: as annotations of its pod, or in a file.

Telling never harms the run: it happens beside it, with short limits, and what cannot be reported is dropped. The pod is
known from POD_NAME and POD_NAMESPACE (the downward API) and the service account of the pod, which must be allowed to
patch its own pod; without these, or with SHOAL_PROGRESS_FILE, the same words go to a file.
"""

from __future__ import annotations

import json
import os
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

CHECKPOINT, PROGRESS = "shoal.dev/last-checkpoint", "shoal.dev/progress"
STEP_TIME, NETWORK_SHARE = "shoal.dev/step-time", "shoal.dev/network-share"
FILE_VARIABLE = "SHOAL_PROGRESS_FILE"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Progress:
    step: int
    steps: int | None
    saved_s: float | None
    """When work was saved last, in seconds since 1970."""
    step_s: float | None = None
    """The mean time of the steps since the last report, without what saving took."""
    network_share: float | None = None
    """The part of that time, 0 to 1, in which the process waited for other ranks; None where the script does not
    measure it."""

    def annotations(self) -> dict[str, str]:
        found = {PROGRESS: f"{self.step}" if self.steps is None else f"{self.step}/{self.steps}"}
        if self.saved_s is not None:
            found[CHECKPOINT] = datetime.fromtimestamp(self.saved_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if self.step_s is not None:
            found[STEP_TIME] = f"{self.step_s * 1000:.3f}ms"
        if self.network_share is not None:
            found[NETWORK_SHARE] = f"{min(1.0, self.network_share):.3f}"
        return found


class Reporter(Protocol):
    def tell(self, progress: Progress) -> None:
        """Returns at once, and raises nothing."""
        ...

    def close(self) -> None:
        """What was reported last has been passed on, or cannot be."""
        ...


class Silence:
    def tell(self, progress: Progress) -> None:
        """Does nothing: there is no receiver."""

    def close(self) -> None:
        """Nothing is open."""


class FileReporter:
    """One JSON object, replaced whole."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def tell(self, progress: Progress) -> None:
        made = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        try:
            made.write_text(json.dumps(progress.annotations()) + "\n", encoding="utf-8")
            made.replace(self._file)
        except OSError:
            # A full disk is the run's to find out when it saves.
            return

    def close(self) -> None:
        """Nothing is open."""


class ProgressAnnotator:
    """The pod's own annotations, by one request at a time; of several that wait the latest counts."""

    def __init__(self, url: str, account: Path = SERVICE_ACCOUNT, trusted: ssl.SSLContext | None = None) -> None:
        self._url = url
        self._account = account
        self._trusted = trusted
        self._latest: Progress | None = None
        self._bell = threading.Condition()
        self._is_closing = False
        self._thread = threading.Thread(target=self._work, name="shoal-progress", daemon=True)
        self._thread.start()

    def tell(self, progress: Progress) -> None:
        with self._bell:
            self._latest = progress
            self._bell.notify()

    def close(self) -> None:
        with self._bell:
            self._is_closing = True
            self._bell.notify()
        self._thread.join(2 * _LIMIT_S)

    def _work(self) -> None:
        while True:
            with self._bell:
                while self._latest is None and not self._is_closing:
                    self._bell.wait()
                progress, self._latest = self._latest, None
            if progress is None:
                return
            self._send(progress)

    def _send(self, progress: Progress) -> None:
        body = json.dumps({"metadata": {"annotations": progress.annotations()}}).encode()
        try:
            token = (self._account / "token").read_text(encoding="utf-8").strip()
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/merge-patch+json"}
            request = urllib.request.Request(self._url, body, headers, method="PATCH")  # noqa: S310 - https, our own words
            trusted = self._trusted or ssl.create_default_context(cafile=str(self._account / "ca.crt"))
            with urllib.request.urlopen(request, timeout=_LIMIT_S, context=trusted):  # noqa: S310 - the same
                pass
        except (OSError, urllib.error.URLError, ValueError):
            # Forbidden or unreachable: the run goes on, and the next report may succeed.
            return


def reporter_of(environment: Mapping[str, str], account: Path = SERVICE_ACCOUNT) -> Reporter:
    """Where this process can tell how far it is."""
    file = environment.get(FILE_VARIABLE)
    if file:
        return FileReporter(Path(file))
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    name, namespace = environment.get("POD_NAME"), environment.get("POD_NAMESPACE")
    if not (host and name and namespace and (account / "token").exists()):
        return Silence()
    shown = f"[{host}]" if ":" in host else host
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"
    return ProgressAnnotator(f"https://{shown}:{port}{path}?fieldManager=shoal-train", account)
