"""An operator with `shoal.client`: it copies the label `team` of each Namespace to the ConfigMaps in it.

python examples/client/team_labels.py            # one process
python examples/client/team_labels.py --replica  # one of several: the holder of the Lease default/team-labels works
"""

import asyncio
import socket
import sys
import uuid

from shoal.client import Context, Item, Key, Kind, Lock, Loop, Patch, locate, run_controllers

NAMESPACES = Kind("", "v1", "namespaces", "Namespace", is_namespaced=False)
CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap")


def team_labels(context: Context) -> Loop:
    """The controller: a work queue with the keys of ConfigMaps, filled by changes of both kinds."""
    namespaces, config_maps = context.informers.of(NAMESPACES), context.informers.of(CONFIG_MAPS)
    in_namespace = config_maps.index("namespace", lambda item: [item.namespace])

    async def reconcile(key: Key) -> None:
        item, namespace = config_maps.get(*key), namespaces.get("", key[0])
        if item is None or namespace is None:
            return
        team = namespace.obj()["metadata"].get("labels", {}).get("team")
        if team and item.obj()["metadata"].get("labels", {}).get("team") != team:
            # A conflict or an error of the server is retried with backoff by the loop.
            patch = Patch("merge", {"metadata": {"labels": {"team": team}, "resourceVersion": str(item.version)}})
            await context.api.patch(CONFIG_MAPS, *key, patch)

    def keys(namespace: Item) -> list[Key]:
        return [item.key for item in in_namespace[namespace.name]]

    loop = Loop(context, reconcile)
    loop.follow(CONFIG_MAPS)
    loop.follow(NAMESPACES, keys)
    return loop


def main(arguments: list[str]) -> None:
    identity = f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"
    lock = Lock("default", "team-labels", identity) if "--replica" in arguments else None
    asyncio.run(run_controllers(locate(), {"team-labels": team_labels}, lock))


if __name__ == "__main__":
    main(sys.argv[1:])
