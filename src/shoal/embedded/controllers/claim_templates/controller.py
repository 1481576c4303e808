"""Runs the resource claim controller: one loop for the claims that pods need, one for the cleanup of claims."""

from __future__ import annotations

import asyncio

from shoal.client.context import Context
from shoal.embedded.controllers.claim_templates.claims import claim_controller
from shoal.embedded.controllers.claim_templates.pods import pod_claim_controller


def resource_claim_controller(context: Context) -> ResourceClaims:
    return ResourceClaims(context)


class ResourceClaims:
    def __init__(self, context: Context) -> None:
        self.name = context.name
        self._parts = (pod_claim_controller(context), claim_controller(context))

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            for part in self._parts:
                group.create_task(part.run())
