"""Changes MIG modes and instances by NVIDIA's management library.

The library is given and initialized, so that another object with the same functions can take its place. Profiles are
looked up at the driver: the number that creates an instance differs from the number that asks for a profile.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar, cast

from shoal.agent import nvml_library
from shoal.agent.nvml_library import Handle, NvmlLibrary, code_of, complete
from shoal.data.mig import Layout, layout_of_product
from shoal.devices.mig_port import ChangeFailure, GpuInstance, MigChangeError
from shoal.devices.port import UnknownGpuError
from shoal.devices.product_names import product_of_device

T = TypeVar("T")
_INVALID_ARGUMENT, _IN_USE, _NO_ROOM = 2, 19, 23
_PROFILES = range(0x12)
"""The numbers by which profiles are asked for."""
_COMPUTE_PROFILES: Mapping[int, int] = {1: 0, 2: 1, 3: 2, 4: 3, 7: 4, 8: 5, 6: 6}
_SHARED_ENGINES = 0
_MOST_INSTANCES = 16
"""Greater than the number that drivers report, which is too small for some profiles."""
_NAME_BEFORE = "MIG "
_REASONS: Mapping[int, tuple[ChangeFailure, str]] = {
    nvml_library.NOT_SUPPORTED: ("not-supported", "the GPU or its driver does not support it"),
    nvml_library.NO_PERMISSION: ("no-permission", "no permission; run as root"),
    nvml_library.GPU_IS_LOST: ("lost", "the GPU does not respond"),
    nvml_library.RESET_REQUIRED: ("lost", "the GPU needs a reset"),
    nvml_library.NOT_FOUND: ("no-instance", "there is no such instance"),
    _INVALID_ARGUMENT: ("no-room", "the GPU has no such place"),
    _IN_USE: ("in-use", "it is in use by another client"),
    _NO_ROOM: ("no-room", "the GPU has not enough free slices"),
}


class NvmlMigLibrary(NvmlLibrary, Protocol):
    """What is called in addition to the functions that only read."""

    @property
    def c_nvmlGpuInstance_t(self) -> Any: ...
    @property
    def c_nvmlComputeInstance_t(self) -> Any: ...
    @property
    def c_nvmlGpuInstancePlacement_t(self) -> Any: ...
    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Handle: ...
    def nvmlDeviceSetMigMode(self, device: Handle, mode: int) -> int: ...
    def nvmlDeviceGetGpuInstanceProfileInfo(self, device: Handle, profile: int) -> Any: ...
    def nvmlDeviceGetGpuInstances(self, device: Handle, profile_id: int, found: Any, count: Any) -> int: ...
    def nvmlDeviceCreateGpuInstanceWithPlacement(self, device: Handle, profile_id: int, placement: Any) -> Handle: ...
    def nvmlGpuInstanceDestroy(self, instance: Handle) -> int: ...
    def nvmlGpuInstanceGetComputeInstanceProfileInfo(self, instance: Handle, profile: int, engines: int) -> Any: ...
    def nvmlGpuInstanceGetComputeInstances(self, instance: Handle, profile_id: int, found: Any, count: Any) -> int: ...
    def nvmlGpuInstanceCreateComputeInstance(self, instance: Handle, profile_id: int) -> Handle: ...
    def nvmlComputeInstanceDestroy(self, instance: Handle) -> int: ...


class NvmlMigControl:
    """Implements MigControl."""

    def __init__(self, library: NvmlMigLibrary) -> None:
        self._library = cast("NvmlMigLibrary", complete(library))

    def instances(self, uuid: str) -> tuple[GpuInstance, ...]:
        handle = self._handle(uuid)
        if self._optional(self._library.nvmlDeviceGetMigMode, handle, default=(0, 0))[0] == 0:
            return ()
        found = [one for one, _ in self._instances(handle)]
        return tuple(sorted(found, key=lambda one: one.start))

    def set_mode(self, uuid: str, *, enabled: bool) -> bool:
        handle = self._handle(uuid)
        what = f"cannot {'enable' if enabled else 'disable'} MIG mode"
        self._changed(what, self._library.nvmlDeviceSetMigMode, handle, int(enabled))
        current, _ = self._changed(what, self._library.nvmlDeviceGetMigMode, handle)
        return bool(current) == enabled

    def create(self, uuid: str, profile: str, start: int, compute: tuple[int, ...]) -> None:
        handle, library = self._handle(uuid), self._library
        what = f"cannot create {profile} at slice {start}"
        info = next((info for name, info in self._profiles(handle) if name == profile), None)
        if info is None:
            raise MigChangeError("not-supported", f"{what}: the GPU has no such profile")
        facts = self._facts(handle)
        known = facts.profile(profile) if facts is not None else None
        width = known.width if known is not None else info.sliceCount
        place = ctypes.pointer(library.c_nvmlGpuInstancePlacement_t(start, width))
        made = self._changed(what, library.nvmlDeviceCreateGpuInstanceWithPlacement, handle, info.id, place)
        try:
            for size in compute:
                self._create_part(f"{what}: compute instance of {size} slices", made, size)
        except MigChangeError:
            with suppress(MigChangeError):
                self._destroy(what, made)
            raise

    def destroy(self, uuid: str, number: int) -> None:
        handle = self._handle(uuid)
        what = f"cannot destroy instance {number}"
        for one, made in self._instances(handle):
            if one.number == number:
                self._destroy(what, made)

    def _create_part(self, what: str, made: Handle, size: int) -> None:
        library = self._library
        number = _COMPUTE_PROFILES.get(size)
        if number is None:
            raise MigChangeError("not-supported", f"{what}: there is no such profile")
        part = self._changed(what, library.nvmlGpuInstanceGetComputeInstanceProfileInfo, made, number, _SHARED_ENGINES)
        self._changed(what, library.nvmlGpuInstanceCreateComputeInstance, made, part.id)

    def _destroy(self, what: str, made: Handle) -> None:
        for _, part in self._parts(made):
            self._changed(what, self._library.nvmlComputeInstanceDestroy, part)
        self._changed(what, self._library.nvmlGpuInstanceDestroy, made)

    def _handle(self, uuid: str) -> Handle:
        try:
            return self._library.nvmlDeviceGetHandleByUUID(uuid)
        except self._library.NVMLError as error:
            if code_of(error) in (nvml_library.NOT_FOUND, _INVALID_ARGUMENT):
                raise UnknownGpuError(uuid) from error
            raise _failure("cannot use the GPU", error) from error

    def _facts(self, handle: Handle) -> Layout | None:
        name = self._optional(self._library.nvmlDeviceGetName, handle, default="")
        return layout_of_product(product_of_device(name).removeprefix("NVIDIA-"))

    def _profiles(self, handle: Handle) -> Iterator[tuple[str, Any]]:
        """Name and description; old drivers give no names, which are those of the table then."""
        facts = self._facts(handle)
        for number in _PROFILES:
            info = self._optional(self._library.nvmlDeviceGetGpuInstanceProfileInfo, handle, number, default=None)
            if info is None:
                continue
            own = getattr(info, "name", b"")
            text = own.decode() if isinstance(own, bytes) else own
            known = next((one.name for one in facts.profiles if one.enum == number), "") if facts is not None else ""
            yield text.removeprefix(_NAME_BEFORE) or known, info

    def _instances(self, handle: Handle) -> Iterator[tuple[GpuInstance, Handle]]:
        for name, info in self._profiles(handle):
            for made in self._listed(
                self._library.c_nvmlGpuInstance_t, self._library.nvmlDeviceGetGpuInstances, handle, info.id
            ):
                found = self._changed("cannot read an instance", self._library.nvmlGpuInstanceGetInfo, made)
                sizes = tuple(sorted((size for size, _ in self._parts(made)), reverse=True))
                yield GpuInstance(found.id, name, found.placement.start, found.placement.size, sizes), made

    def _parts(self, made: Handle) -> list[tuple[int, Handle]]:
        library = self._library
        found = []
        for size, number in _COMPUTE_PROFILES.items():
            info = self._optional(
                library.nvmlGpuInstanceGetComputeInstanceProfileInfo, made, number, _SHARED_ENGINES, default=None
            )
            if info is not None:
                parts = self._listed(
                    library.c_nvmlComputeInstance_t, library.nvmlGpuInstanceGetComputeInstances, made, info.id
                )
                found += [(size, part) for part in parts]
        return found

    def _listed(self, kind: Any, get: Callable[..., Any], owner: Handle, profile_id: int) -> Sequence[Handle]:
        found, count = (kind * _MOST_INSTANCES)(), ctypes.c_uint(0)
        self._changed("cannot list instances", get, owner, profile_id, found, ctypes.byref(count))
        return [found[position] for position in range(count.value)]

    def _changed(self, what: str, call: Callable[..., T], *given: Any) -> T:
        try:
            return call(*given)
        except self._library.NVMLError as error:
            raise _failure(what, error) from error

    def _optional(self, get: Callable[..., T], *given: Any, default: Any) -> Any:
        """The value of a function, the default if the driver has none."""
        try:
            return get(*given)
        except self._library.NVMLError as error:
            if code_of(error) in (nvml_library.GPU_IS_LOST, nvml_library.RESET_REQUIRED):
                raise _failure("cannot read the GPU", error) from error
            return default


def _failure(what: str, error: Exception) -> MigChangeError:
    reason, words = _REASONS.get(code_of(error), ("other", str(error)))
    return MigChangeError(reason, f"{what}: {words}")
