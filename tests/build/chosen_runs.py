"""What `shoal run` is told to do, as its files would say it, and a server that lacks what older ones lack."""

from __future__ import annotations

from msgspec.structs import replace

from build.small_clusters import SmallCluster
from shoal.api.kueue import Configuration
from shoal.api.run_configuration import RunConfiguration
from shoal.api.webhook_rules import WebhookRules
from shoal.client.port import ServedKind
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.engine.profile import DEFAULT_POLICY, POLICIES
from shoal.wiring.run_choice import RunChoice
from shoal.wiring.shoal import PARTS


def chosen_run(
    webhook: WebhookRules | None = None, kueue: Configuration | None = None, *parts: str, names: tuple[str, ...] = ()
) -> RunChoice:
    """All parts where none is named."""
    own = RunConfiguration(webhook=webhook or WebhookRules())
    if names:
        own = replace(own, scheduler_names=names)
    return RunChoice(own, POLICIES[DEFAULT_POLICY], (), parts or PARTS, kueue)


class OlderServer(InsideApi):
    """A server as Kubernetes was before it had policies that change what is created."""

    def __init__(self, cluster: SmallCluster) -> None:
        super().__init__(cluster.plane, Actor("admin", ("system:masters", "system:authenticated")), "test")

    async def served(self) -> tuple[ServedKind, ...]:
        return tuple(one for one in await super().served() if not one.kind.plural.startswith("mutatingadmissionpolic"))
