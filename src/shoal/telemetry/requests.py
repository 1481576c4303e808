"""Measures requests to the API server: by verb and status code, and their duration."""

from __future__ import annotations

from shoal.prometheus.families import exponential
from shoal.prometheus.registry import Registry

DURATIONS = exponential(0.001, 2, 15)


class RequestMetrics:
    def __init__(self, registry: Registry) -> None:
        self.requests = registry.counter(
            "shoal_client_requests_total",
            "Requests to the API server, by verb and the code of the answer; none where there was no answer.",
            ("verb", "code"),
        )
        self.seconds = registry.histogram(
            "shoal_client_request_duration_seconds", "How long answers took that came.", DURATIONS, ("verb",)
        )

    def done(self, verb: str, code: str, seconds: float) -> None:
        self.requests.of(verb, code).inc()
        self.seconds.of(verb).observe(seconds)


class LeaderMetrics:
    """As in client-go: 1 while this process leads under that name."""

    def __init__(self, registry: Registry) -> None:
        self._leads = registry.gauge(
            "leader_election_master_status", "Whether this process is the leader (1) or a standby (0).", ("name",)
        )

    def stands_by(self, name: str) -> None:
        self._leads.of(name).set(0)

    def leads(self, name: str) -> None:
        self._leads.of(name).set(1)
