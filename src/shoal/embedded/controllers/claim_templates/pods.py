"""Creates the claims that a pod requests by template, and writes their names to the pod's status.

A claim is identified by its owner and the pod's name for it, so that a claim created just before a crash is found and
not created twice. The claims of a pod that a user bound are reserved here, because no scheduler does it.
"""

from __future__ import annotations

from shoal.client.context import Context, Controller
from shoal.client.index import Index
from shoal.client.informers import Informers
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from shoal.client.loop import Loop
from shoal.client.port import Patch
from shoal.client.refusals import NotFoundError
from shoal.embedded.controllers.claim_templates.claim import ClaimingPod, PodClaim, consumer, is_made_for, new_claim
from shoal.units.errors import ShoalError, TemporaryError

_ASKS = b'"resourceClaims"'
_MOST_USERS = 256


def claims_by_owner(informers: Informers) -> Index:
    return informers.of(RESOURCE_CLAIMS).index("claim-owner", _owners)


def _owners(item: Item) -> list[str]:
    return [one["uid"] for one in item.obj()["metadata"].get("ownerReferences") or ()]


def pod_claim_controller(context: Context) -> Controller:
    return _PodClaims(context).loop


class _PodClaims:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._api = context.api
        self._events = context.events.named("resource_claim")
        self._pods = context.informers.of(PODS)
        self._claims = context.informers.of(RESOURCE_CLAIMS)
        self._templates = context.informers.of(RESOURCE_CLAIM_TEMPLATES)
        self._by_owner = claims_by_owner(context.informers)
        self.loop = Loop(context, self._reconcile, workers=8)
        self.loop.follow(PODS, lambda item: [item.key] if _ASKS in item.data else [], only_latest=True)
        self.loop.follow(RESOURCE_CLAIM_TEMPLATES, self._waiting)
        self.loop.need(RESOURCE_CLAIMS)

    def _waiting(self, template: Item) -> list[Key]:
        """Pods that may wait for the template."""
        name = template.name.encode()
        return [
            pod.key
            for pod in self._pods
            if pod.namespace == template.namespace and _ASKS in pod.data and name in pod.data
        ]

    async def _reconcile(self, key: Key) -> None:
        item = self._pods.get(*key)
        if item is None:
            return
        pod = item.read(ClaimingPod)
        if pod.metadata.deletion_timestamp is not None or pod.is_done or not pod.claims:
            return
        made = pod.made
        found = dict(made)
        for wanted in pod.claims:
            if wanted.resource_claim_template_name and wanted.name not in found:
                try:
                    found[wanted.name] = await self._claim(pod, wanted)
                except TemporaryError:
                    raise
                except ShoalError as error:
                    words = f"PodResourceClaim {wanted.name}: {error.what}"
                    about: Obj = {"kind": "Pod", "apiVersion": "v1", "metadata": item.obj()["metadata"]}
                    self._events.record(about, "FailedResourceClaimCreation", words, type_="Warning")
                    raise
        if found != made:
            await self._report(item, found)
        if pod.spec.node_name:
            await self._reserve(pod, found)

    async def _claim(self, pod: ClaimingPod, wanted: PodClaim) -> str:
        for item in self._by_owner[pod.metadata.uid]:
            if is_made_for(item.obj(), pod, wanted.name):
                return item.name
        namespace, name = pod.metadata.namespace, wanted.resource_claim_template_name or ""
        template = self._templates.get(namespace, name)
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{name}" not found'
            raise NotFoundError(f'resource claim template "{name}": {missing}', reason="NotFound")
        return (await self._api.create(RESOURCE_CLAIMS, new_claim(pod, wanted, template.obj()))).name

    async def _report(self, item: Item, found: dict[str, str | None]) -> None:
        statuses = [
            {"name": name} | ({"resourceClaimName": claim} if claim is not None else {})
            for name, claim in found.items()
        ]
        meta = {"uid": item.uid, "resourceVersion": str(item.version)}
        body = {"metadata": meta, "status": {"resourceClaimStatuses": statuses}}
        await self._api.patch(PODS, item.namespace, item.name, Patch("merge", body), "status")

    async def _reserve(self, pod: ClaimingPod, found: dict[str, str | None]) -> None:
        for wanted in pod.claims:
            name = wanted.resource_claim_name or found.get(wanted.name)
            item = self._claims.get(pod.metadata.namespace, name) if name else None
            if item is None:
                continue
            claim = item.obj()
            status = claim.get("status") or {}
            users = status.get("reservedFor") or []
            is_known = any(one["uid"] == pod.metadata.uid for one in users)
            if status.get("allocation") and not is_known and len(users) < _MOST_USERS:
                claim["status"] = status | {"reservedFor": [*users, consumer(pod)]}
                await self._api.update(RESOURCE_CLAIMS, claim, "status")
