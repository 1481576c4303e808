"""The index of what the pods of a node refer to is what a look at all pods would find, whatever happens to them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from build.planes import Operations, operations
from shoal.embedded.apiserver.rest.deleting import DeleteOptions
from shoal.embedded.apiserver.security.node_pods import NodePods, references

NODES, SECRETS = ("n1", "n2", "n3"), ("a", "b", "c", "d")


def pod(name: str, node: str, secrets: list[str]) -> dict[str, Any]:
    pulls = [{"name": one} for one in secrets]
    spec = {"nodeName": node, "imagePullSecrets": pulls, "containers": [{"name": "c", "image": "x"}]}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec}


def scanned(does: Operations) -> set[tuple[str, str]]:
    """Node and Secret."""
    objs = [record.obj() for record in does.state.list(does.resource("pods").home, None).records]
    return {
        (obj["spec"].get("nodeName", ""), name)
        for obj in objs
        for plural, name in references(obj)
        if plural == "secrets" and obj["spec"].get("nodeName")
    }


async def test_the_index_agrees_with_a_look_at_all_pods(tmp_path: Path) -> None:
    draw = random.Random(11)
    async with operations(tmp_path) as does:
        index, alive = NodePods(does.state), list[str]()
        for step in range(60):
            if alive and draw.random() < 0.4:
                name = alive.pop(draw.randrange(len(alive)))
                assert await does.delete("pods", name, DeleteOptions(grace_period_seconds=0))
            else:
                # A name comes again on another node.
                name = draw.choice([one for one in (f"p{number}" for number in range(40)) if one not in alive])
                secrets = draw.sample(SECRETS, draw.randint(0, 2))
                await does.create("pods", pod(name, draw.choice((*NODES, "")), secrets))
                alive.append(name)
            if step < 20:
                # What was there before the first question counts too.
                continue
            found = {(node, name) for node in NODES for name in SECRETS if index.has(node, "secrets", "default", name)}
            assert found == scanned(does)
        assert not any(index.has(node, "secrets", "other", name) for node in NODES for name in SECRETS)
