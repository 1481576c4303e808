"""The functions of NVIDIA's management library that change MIG modes and instances, for the fake of the library."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

from shoal.data.mig import Profile, layout

IN_USE, INSUFFICIENT_RESOURCES, INVALID_ARGUMENT = 19, 23, 2
_COMPUTE = {0: 1, 1: 2, 2: 3, 3: 4, 4: 7}


class _InstanceCell(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_int), ("number", ctypes.c_int)]


class _PartCell(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_int), ("number", ctypes.c_int), ("position", ctypes.c_int)]


class _Placement(ctypes.Structure):
    _fields_ = [("start", ctypes.c_uint), ("size", ctypes.c_uint)]


class MigFunctions:
    """A part of FakeNvml, whose GPUs are those of an H100 of 80 GB."""

    c_nvmlGpuInstance_t = ctypes.POINTER(_InstanceCell)
    c_nvmlComputeInstance_t = ctypes.POINTER(_PartCell)
    c_nvmlGpuInstancePlacement_t = _Placement
    NVMLError: type[Exception]
    gpus: list[Any]

    def _gpu(self, function: str, handle: Any) -> Any:
        raise NotImplementedError

    def _check(self, function: str, gpu: int | None = None) -> None:
        raise NotImplementedError

    def _pointer(self, index: int) -> Any:
        raise NotImplementedError

    def _fails(self, code: int) -> Exception:
        return self.NVMLError(code)

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Any:
        gpu = next((one for one in self.gpus if one.uuid == uuid), None)
        if gpu is None:
            raise self._fails(6)
        self._check("nvmlDeviceGetHandleByUUID", gpu.index)
        return self._pointer(gpu.index)

    def nvmlDeviceSetMigMode(self, device: Any, mode: int) -> int:
        gpu = self._gpu("nvmlDeviceSetMigMode", device)
        if bool(mode) != gpu.is_mig and gpu.processes:
            raise self._fails(IN_USE)
        if gpu.needs_reset and bool(mode) != gpu.is_mig:
            gpu.pending_mode = bool(mode)
            return 16
        gpu.is_mig, gpu.pending_mode = bool(mode), None
        if not mode:
            gpu.instances = []
        return 0

    def nvmlDeviceGetGpuInstanceProfileInfo(self, device: Any, profile: int) -> Any:
        self._gpu("nvmlDeviceGetGpuInstanceProfileInfo", device)
        found = next((one for one in _profiles() if one.enum == profile), None)
        if found is None:
            raise self._fails(3)
        name = f"MIG {found.name}".encode()
        return SimpleNamespace(id=found.id, sliceCount=found.compute, instanceCount=found.max, name=name)

    def nvmlDeviceGetGpuInstances(self, device: Any, profile_id: int, found: Any, count: Any) -> int:
        gpu = self._gpu("nvmlDeviceGetGpuInstances", device)
        own = [one for one in gpu.instances if _profile(one.profile).id == profile_id]
        for position, one in enumerate(own):
            found[position] = ctypes.pointer(_InstanceCell(gpu.index, one.number))
        count._obj.value = len(own)
        return 0

    def nvmlDeviceCreateGpuInstanceWithPlacement(self, device: Any, profile_id: int, placement: Any) -> Any:
        gpu = self._gpu("nvmlDeviceCreateGpuInstanceWithPlacement", device)
        profile = next(one for one in _profiles() if one.id == profile_id)
        start, width = placement.contents.start, placement.contents.size
        if not gpu.is_mig:
            raise self._fails(3)
        if start not in profile.starts or width != profile.width:
            raise self._fails(INVALID_ARGUMENT)
        if profile.name == gpu.refuse_profile:
            raise self._fails(INSUFFICIENT_RESOURCES)
        is_media = profile.holds_media() and any(_profile(one.profile).holds_media() for one in gpu.instances)
        if is_media or any(start < one.start + one.width and one.start < start + width for one in gpu.instances):
            raise self._fails(INSUFFICIENT_RESOURCES)
        number = next(each for each in range(1, 16) if all(one.number != each for one in gpu.instances))
        gpu.instances.append(gpu.new_instance(number, profile.name, start, width, profile.memory_mib or 0))
        return ctypes.pointer(_InstanceCell(gpu.index, number))

    def nvmlGpuInstanceDestroy(self, instance: Any) -> int:
        gpu, one = self._instance("nvmlGpuInstanceDestroy", instance)
        if one.compute:
            raise self._fails(IN_USE)
        gpu.instances.remove(one)
        return 0

    def nvmlGpuInstanceGetComputeInstanceProfileInfo(self, instance: Any, profile: int, engines: int) -> Any:
        _, one = self._instance("nvmlGpuInstanceGetComputeInstanceProfileInfo", instance)
        assert engines == 0
        size = _COMPUTE.get(profile)
        if size is None or size > _profile(one.profile).compute:
            raise self._fails(3)
        return SimpleNamespace(id=profile, sliceCount=size)

    def nvmlGpuInstanceGetComputeInstances(self, instance: Any, profile_id: int, found: Any, count: Any) -> int:
        gpu, one = self._instance("nvmlGpuInstanceGetComputeInstances", instance)
        positions = [at for at, size in enumerate(one.compute) if size == _COMPUTE[profile_id]]
        for position, at in enumerate(positions):
            found[position] = ctypes.pointer(_PartCell(gpu.index, one.number, at))
        count._obj.value = len(positions)
        return 0

    def nvmlGpuInstanceCreateComputeInstance(self, instance: Any, profile_id: int) -> Any:
        gpu, one = self._instance("nvmlGpuInstanceCreateComputeInstance", instance)
        size = _COMPUTE[profile_id]
        if sum(one.compute) + size > _profile(one.profile).compute:
            raise self._fails(INSUFFICIENT_RESOURCES)
        one.compute.append(size)
        return ctypes.pointer(_PartCell(gpu.index, one.number, len(one.compute) - 1))

    def nvmlComputeInstanceDestroy(self, instance: Any) -> int:
        cell = instance.contents
        gpu, one = self._instance("nvmlComputeInstanceDestroy", instance)
        if any(number == one.number for _, _, number in gpu.processes):
            raise self._fails(IN_USE)
        # The others keep their positions, as the handles of a list stay valid.
        one.compute[cell.position] = 0
        if not any(one.compute):
            one.compute.clear()
        return 0

    def _instance(self, function: str, instance: Any) -> tuple[Any, Any]:
        cell = instance.contents
        self._check(function, cell.gpu)
        gpu = self.gpus[cell.gpu]
        found = next((one for one in gpu.instances if one.number == cell.number), None)
        if found is None:
            raise self._fails(6)
        return gpu, found


def _profiles() -> tuple[Profile, ...]:
    facts = layout("H100-80GB")
    assert facts is not None
    return facts.profiles


def _profile(name: str) -> Profile:
    return next(one for one in _profiles() if one.name == name)
