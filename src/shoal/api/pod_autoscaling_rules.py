"""Checks the section podAutoscaling in the configuration of `shoal run`: how the API server reaches the metrics APIs,
and what triggers may ask.
"""

from __future__ import annotations

from ipaddress import ip_network
from typing import Annotated

from msgspec import Meta

from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where
from shoal.units.listening import check_listening

Port = Annotated[int, Meta(ge=1, le=65535)]


class PodAutoscalingRules(ApiStruct, frozen=True, forbid_unknown_fields=True):
    address: str = "127.0.0.1"
    """Where the metrics APIs listen. Access from other machines has to be set explicitly."""
    port: Port = 10443
    service_namespace: str = "shoal-system"
    service_name: str = "shoal-metrics-apis"
    """The Service by which the API server reaches them. Without it, they are not registered."""
    service_port: Port = 443
    trigger_networks: tuple[str, ...] = ()
    """Networks of loopback and link-local addresses that triggers may ask nevertheless."""
    prometheus_url: str = ""
    """A Prometheus server as a further source of metrics."""
    prometheus_rules: str = ""
    """The file with the rules of prometheus-adapter that say which ones."""
    keda_namespace: str = "keda"
    """Where KEDA runs, if it does: ScaledObjects are left to it then."""

    def check(self, where: Where) -> None:
        check_listening(self.address, where.below("address"))
        if bool(self.prometheus_url) != bool(self.prometheus_rules):
            named = "prometheusRules" if self.prometheus_rules else "prometheusUrl"
            what = "is given without the other one of prometheusUrl and prometheusRules"
            raise UserError(what, where=where.below(named), fix="give both, or leave out both")
        if self.prometheus_url and not self.prometheus_url.startswith(("http://", "https://")):
            fix = "as in http://prometheus.monitoring.svc:9090"
            raise UserError("is not an address", where=where.below("prometheusUrl"), fix=fix)
        for at, text in enumerate(self.trigger_networks):
            try:
                ip_network(text)
            except ValueError:
                here, fix = where.below(f"triggerNetworks[{at}]"), "write a network such as 127.0.0.0/8"
                raise UserError(f'"{text}" is not a network', where=here, fix=fix) from None
        for field, name in (
            ("serviceNamespace", self.service_namespace),
            ("serviceName", self.service_name),
            ("kedaNamespace", self.keda_namespace),
        ):
            if not name:
                raise UserError("is not to be empty", where=where.below(field))
