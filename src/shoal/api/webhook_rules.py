"""Checks the webhook section in the configuration of `shoal run`: whether it is enabled, its address, how it is
reached.

A value of its own beside `run_configuration.py`: how an API server comes to a process is another question than what the
process does.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where
from shoal.units.listening import check_listening

OPEN_DOOR = "set webhook.address to the address of this pod, or to 0.0.0.0 for all that the machine has"
Port = Annotated[int, Meta(ge=1, le=65535)]


class WebhookRules(ApiStruct, frozen=True, forbid_unknown_fields=True):
    enabled: Literal["auto", "always", "never"] = "auto"
    """`auto`: with a url, or once the Service is there. An unreachable webhook would block the requests it
    is asked about."""
    address: str = "127.0.0.1"
    """Where it listens. Access from other machines has to be set explicitly."""
    port: Port = 9443
    url: str = ""
    """Where the API server reaches it; else by the Service."""
    service_namespace: str = "shoal-system"
    service_name: str = "shoal-webhook"
    service_port: Port = 443
    names: tuple[str, ...] = ()
    """More names and addresses that its certificate is for."""
    certificate_folder: str = ""
    """Where another program renews tls.crt and tls.key; empty: Shoal makes and renews its own certificate."""
    injected_from: str = ""
    """Namespace and name of a Certificate of cert-manager, which then writes the authority to the configurations."""

    def check(self, where: Where) -> None:
        check_listening(self.address, where.below("address"))
        if self.url:
            parts = urlsplit(self.url)
            if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment or parts.username:
                fix = "as in https://shoal.example.com:9443"
                raise UserError(
                    "the API server asks by https at a host and nothing else", where=where.below("url"), fix=fix
                )
        if self.enabled == "always" and not self.url and self.is_on_loopback:
            what = f"a Service cannot lead to {self.address}, and the API server comes by one where no url is given"
            raise UserError(what, where=where.below("address"), fix=OPEN_DOOR)
        if bool(self.injected_from) != bool(self.certificate_folder):
            what = "is given without the other one of certificateFolder and injectedFrom"
            named = "injectedFrom" if self.injected_from else "certificateFolder"
            raise UserError(what, where=where.below(named), fix="give both, or leave out both")
        if self.injected_from and self.injected_from.count("/") != 1:
            fix = "as in shoal-system/shoal-webhook"
            raise UserError("is not a namespace and a name", where=where.below("injectedFrom"), fix=fix)
        for field, name in (("serviceNamespace", self.service_namespace), ("serviceName", self.service_name)):
            if not name:
                raise UserError("is not to be empty", where=where.below(field))

    @property
    def is_on_loopback(self) -> bool:
        """Where only who is on the same machine can come from, a proxy with a url say."""
        if self.address == "localhost":
            return True
        try:
            return ip_address(self.address).is_loopback
        except ValueError:
            return False

    def all_names(self) -> tuple[str, ...]:
        host = urlsplit(self.url).hostname if self.url else None
        return (*self.names, *([host] if host else []))
