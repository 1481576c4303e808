"""What kubectl and `shoal cluster heal` do to objects, by the simplest reading of the commands of `shoal why`."""

from __future__ import annotations

import copy
import json
import re
import shlex
from typing import Any

from build.manifests import Object, priority_class

MIG_PROFILE = re.compile(r"all-(?P<profile>\S+)")
MIG_SLICES = {"1g.10gb": 7, "2g.20gb": 3, "3g.40gb": 2, "7g.80gb": 1}
"""Instances of each profile on one GPU with 80 GB."""
_CONTROLLERS = ("replicaset", "statefulset", "job", "clusterqueue", "resourceflavor", "limitrange")


def followed(objects: list[Object], command: str) -> list[Object]:
    """The objects after one command."""
    words = shlex.split(command.partition("|")[0])
    by_name = {each["metadata"]["name"]: each for each in objects}
    if words[:2] == ["kubectl", "uncordon"]:
        by_name[words[2]]["spec"]["unschedulable"] = False
    elif words[:3] == ["kubectl", "delete", "pod"]:
        gone = words[3 : words.index("-n")]
        objects = [each for each in objects if each["metadata"]["name"] not in gone]
        owned = [by_name[name] for name in gone if "ownerReferences" in by_name[name]["metadata"]]
        objects += [created_again(each, by_name) for each in owned]
    elif words[:2] == ["kubectl", "patch"] and words[2] in ("pod", *_CONTROLLERS):
        target = next(
            each for each in objects if each["kind"].lower() == words[2] and each["metadata"]["name"] == words[3]
        )
        change(target, patch_of(command))
    elif words[:3] == ["kubectl", "get", "pod"]:
        # The copy is created after all others.
        objects = [each for each in objects if each is not by_name[words[3]]] + [by_name[words[3]]]
        change(by_name[words[3]], patch_of(command))
    elif words[:2] == ["kubectl", "get"] and command.endswith("| kubectl replace --force -f -"):
        change(next(each for each in objects if _is_named(each, words[2], words[3])), patch_of(command))
    elif words[:3] == ["kubectl", "create", "priorityclass"]:
        objects = [*objects, priority_class(words[3], int(words[4].removeprefix("--value=")))]
    elif words[:2] == ["kubectl", "get"] and command.endswith("| kubectl create -f -"):
        kind = words[2].partition(".")[0].removesuffix("s")
        original = next(
            each for each in objects if each["kind"].lower() == kind and each["metadata"]["name"] == words[3]
        )
        created = copy.deepcopy(original)
        # A cluster has set it on every object.
        created["metadata"].setdefault("resourceVersion", "1")
        change(created, patch_of(command))
        objects = [*objects, created]
    elif words[:3] == ["shoal", "cluster", "heal"]:
        healed = by_name[words[3]]
        healed["metadata"].pop("annotations", None)
        healed["status"]["allocatable"] = healed["status"]["capacity"]
        if "--gpu" not in words:
            healed["status"].pop("conditions", None)
            taints = healed["spec"].get("taints", [])
            healed["spec"]["taints"] = [each for each in taints if each["key"] != "node.kubernetes.io/not-ready"]
    elif words[:3] == ["kubectl", "annotate", "job"]:
        key, _, value = words[words.index("-n") + 2].partition("=")
        by_name[words[3]]["metadata"].setdefault("annotations", {})[key] = value
    elif words[:3] == ["kubectl", "label", "node"]:
        *names, label = [word for word in words[3:] if not word.startswith("--")]
        for name in names:
            relabel(by_name[name], label)
    else:
        raise AssertionError(command)
    return objects


def _is_named(obj: Object, kind: str, name: str) -> bool:
    found: tuple[str, str] = obj["kind"].lower(), obj["metadata"]["name"]
    return found == (kind.partition(".")[0].removesuffix("s"), name)


def relabel(node: Object, label: str) -> None:
    """Its MIG manager divides all of its GPUs as the label says."""
    key, _, value = label.partition("=")
    found = MIG_PROFILE.fullmatch(value)
    assert key == "nvidia.com/mig.config", label
    assert found is not None, label
    profile = found["profile"]
    node["metadata"]["labels"] |= {key: value}
    amounts = node["status"]["allocatable"]
    gpus = int(node["metadata"]["labels"]["nvidia.com/gpu.count"])
    for name in [each for each in amounts if each.startswith("nvidia.com/")]:
        del amounts[name]
    if profile == "disabled":
        amounts["nvidia.com/gpu"] = gpus
    else:
        amounts[f"nvidia.com/mig-{profile}"] = gpus * MIG_SLICES[profile]
    node["status"]["capacity"] = dict(amounts)


def patch_of(command: str) -> Any:
    (body,) = [word.removeprefix("-p=") for word in shlex.split(command) if word.startswith("-p=")]
    return json.loads(body)


def created_again(gone: Object, by_name: dict[str, Object]) -> Object:
    """By its controller, from the template as it is now."""
    again = copy.deepcopy(gone)
    again["metadata"] |= {"name": f"{gone['metadata']['name']}-new", "uid": f"{gone['metadata']['uid']}-new"}
    controller = by_name.get(gone["metadata"]["ownerReferences"][0]["name"])
    if controller is not None:
        again["spec"] = copy.deepcopy(controller["spec"]["template"]["spec"])
    again["spec"].pop("nodeName", None)
    again["status"] = {"phase": "Pending"}
    return again


def change(obj: Any, body: Any) -> None:
    """By a JSON patch, or a merge patch."""
    if isinstance(body, dict):
        for field, value in body.items():
            if isinstance(value, dict):
                change(obj.setdefault(field, {}), value)
            else:
                obj[field] = value
        return
    for step in body:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
        place = obj
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        if last == "-":
            place.append(step["value"])
        elif step["op"] == "remove":
            del place[last]
        else:
            place[last] = step["value"]
