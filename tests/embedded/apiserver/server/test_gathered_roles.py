"""What roles gather is written into them, and into those alone that still gather."""

from __future__ import annotations

import asyncio
from pathlib import Path

from build.in_process import MERGE, in_process
from shoal.embedded.apiserver.resource import Home, Obj, Ref
from shoal.embedded.apiserver.storage.faulty import FaultyStorage
from shoal.embedded.apiserver.storage.memory import MemoryStorage

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
GATHERER = Ref(Home("rbac.authorization.k8s.io", "clusterroles"), "", "gatherer")
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}


def role(name: str, labels: dict[str, str] | None = None, **more: object) -> Obj:
    kind = {"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1"}
    return {**kind, "metadata": {"name": name, "labels": labels or {}}, **more}


async def test_a_role_whose_owner_ends_the_gathering_keeps_the_rules_of_its_owner(tmp_path: Path) -> None:
    storage = FaultyStorage(MemoryStorage())
    async with in_process(tmp_path, storage) as api, asyncio.timeout(60):
        gathers = {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}
        await api.ask("POST", ROLES, role("gatherer", aggregationRule=gathers))
        storage.hold()
        gathered = asyncio.create_task(api.ask("POST", ROLES, role("part", {"part": "yes"}, rules=[EVERYTHING])))
        await storage.held()
        own = {"aggregationRule": None, "rules": [PODS]}
        ending = asyncio.create_task(api.ask("PATCH", f"{ROLES}/gatherer", own, MERGE))
        for _ in range(20):
            await asyncio.sleep(0)
        storage.release()
        storage.hold()
        assert (await gathered).code == 201
        await storage.held()
        storage.release()
        assert (await ending).code == 200
        # Whoever gathers asked for the lock before this.
        async with api.plane.context.state.lock(GATHERER):
            record = api.plane.context.state.get(GATHERER)
        assert record is not None
        assert record.obj()["rules"] == [PODS]
