"""All options of the values, and the choices of those that allow some words only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shoal.install.values.nvidia_options import NVIDIA_OPTIONS
from shoal.install.values.option import Option
from shoal.install.values.shoal_options import SHOAL_OPTIONS

OPTIONS: tuple[Option, ...] = (*SHOAL_OPTIONS, *NVIDIA_OPTIONS)
BY_PATH: Mapping[str, Option] = {option.path: option for option in OPTIONS}
GROUPS = frozenset(
    ".".join(parts[:end]) for one in OPTIONS for parts in [one.path.split(".")] for end in range(1, len(parts))
)
NUMBER_OR_TEXT = frozenset({"driver.upgradePolicy.maxUnavailable"})
_PULL = ("Always", "IfNotPresent", "Never")
CHOICES: Mapping[str, tuple[str, ...]] = {
    "mig.strategy": ("none", "single", "mixed"),
    "driver.kernelModuleType": ("auto", "open", "proprietary"),
    "driver.nvidiaDriverCRD.driverType": ("gpu", "vgpu", "vgpu-host-manager"),
    "daemonsets.updateStrategy": ("RollingUpdate", "OnDelete"),
    "operator.defaultRuntime": ("containerd", "crio", "docker"),
    "sandboxWorkloads.defaultWorkload": ("container", "vm-passthrough", "vm-vgpu"),
    "webhook.certificates": ("shoal", "cert-manager"),
    "history.accessMode": ("ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"),
    "ccManager.defaultMode": ("on", "off", "devtools"),
    **{path: _PULL for path in BY_PATH if path.endswith(".imagePullPolicy") or path == "image.pullPolicy"},
}


def defaults() -> dict[str, Any]:
    """A fresh tree with all options."""
    found: dict[str, Any] = {}
    for option in OPTIONS:
        put(found, option.path, copied(option.default))
    return found


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for name in parents:
        tree = tree.setdefault(name, {})
    tree[last] = value


def copied(value: Any) -> Any:
    """Of lists and objects a fresh copy."""
    if isinstance(value, dict):
        return {name: copied(one) for name, one in value.items()}
    return [copied(one) for one in value] if isinstance(value, list) else value


def flat(tree: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Each option, and each value that is below none, with its path."""
    for name, value in tree.items():
        path = f"{before}.{name}" if before else name
        if isinstance(value, Mapping) and value and path not in BY_PATH:
            yield from flat(value, path)
        else:
            yield path, value
