"""Prints `nvidia-smi mig -lgi` and `-lgip`: the existing instances, and the possible ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shoal.data.gpus import find_model
from shoal.data.mig import Layout
from shoal.embedded.gpus.smi_view import GpuView, SeenGpu

_WIDTH = 78


def list_instances(view: GpuView) -> str:
    rows = [
        f"{gpu.index:>4}  MIG {one.profile:<16} {one.profile_id:>7}  {one.number:>9}  {one.start:>8}:{one.width}"
        for gpu in view.gpus
        for one in sorted(gpu.instances, key=lambda one: (one.profile_id, one.start))
    ]
    return _boxed("GPU instances:", " GPU   Name              Profile ID  Instance ID  Start:Size", rows)


def list_profiles(view: GpuView) -> str:
    rows = [row for gpu in view.gpus if (facts := _layout(gpu)) is not None for row in _profiles(gpu, facts)]
    head = " GPU   Name                ID   Instances       Memory     SM    DEC   ENC   JPEG"
    return _boxed("GPU instance profiles:", head, rows)


def _profiles(gpu: SeenGpu, facts: Layout) -> Iterator[str]:
    taken = _taken(gpu, facts)
    for profile in facts.profiles:
        free = left = 0
        for start in profile.starts:
            mask = profile.slices(start)
            if gpu.is_mig and mask & (taken | left) == 0:
                free, left = free + 1, left | mask
        memory = f"{(profile.memory_mib or 0) / 1024:.2f}GiB"
        engines = profile.engines
        yield (
            f"{gpu.index:>4}  MIG {profile.name:<16} {profile.id:>3}     {min(free, profile.max)}/{profile.max}"
            f"  {memory:>11}  {profile.sm or 0:>5}  {engines.decode or 0:>4}  {engines.encode or 0:>4}"
            f"  {engines.jpeg or 0:>4}"
        )


def _taken(gpu: SeenGpu, facts: Layout) -> int:
    profiles = [(facts.profile(one.profile), one.start) for one in gpu.instances]
    taken = 0
    for profile, start in profiles:
        taken |= profile.slices(start) if profile is not None else 0
    return taken


def _layout(gpu: SeenGpu) -> Layout | None:
    model = find_model(gpu.model) if gpu.model else None
    return model.mig_layout() if model is not None else None


def _boxed(title: str, head: str, rows: Sequence[str]) -> str:
    if not rows:
        return ""
    edge = f"+{'-' * (_WIDTH + 2)}+"
    lines = [edge, *(f"| {text:<{_WIDTH}} |" for text in (title, head)), edge.replace("-", "=")]
    lines += [f"| {row:<{_WIDTH}} |" for row in rows]
    return "".join(f"{line}\n" for line in [*lines, edge])
