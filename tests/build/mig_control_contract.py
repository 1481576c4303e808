"""What every control of MIG modes and instances must do, checked on a node with two H100s: see `MigControlContract`."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from shoal.devices.mig_port import GpuInstance, MigChangeError, MigControl
from shoal.devices.port import GpuDriver, UnknownGpuError

HALF, SMALL = "3g.40gb", "1g.10gb"


class MigNode(msgspec.Struct):
    control: MigControl
    driver: GpuDriver
    use: Callable[[int, int | None], None]
    """Let a program run on a GPU, or on its GPU instance of this number."""

    def uuid(self, index: int = 0) -> str:
        return self.driver.gpus().gpus[index].uuid

    def instances(self, index: int = 0) -> list[tuple[str, int, int]]:
        return [(one.profile, one.start, one.width) for one in self.control.instances(self.uuid(index))]


def fails(reason: str, call: Callable[[], object]) -> str:
    with pytest.raises(MigChangeError) as caught:
        call()
    assert caught.value.reason == reason
    return str(caught.value)


class MigControlContract:
    """Subclasses have a fixture `node`: two H100s of 80 GB without MIG."""

    def test_the_mode_of_one_gpu_changes_and_is_reported(self, node: MigNode) -> None:
        assert node.control.set_mode(node.uuid(0), enabled=True)
        assert [gpu.is_mig for gpu in node.driver.gpus().gpus[:2]] == [True, False]
        assert node.control.set_mode(node.uuid(0), enabled=True)
        assert node.control.set_mode(node.uuid(0), enabled=False)
        assert node.driver.gpus().gpus[0].is_mig is False

    def test_instances_are_created_at_their_places(self, node: MigNode) -> None:
        node.control.set_mode(node.uuid(), enabled=True)
        node.control.create(node.uuid(), HALF, 4, (3,))
        node.control.create(node.uuid(), SMALL, 2, (1,))
        assert node.instances() == [(SMALL, 2, 1), (HALF, 4, 4)]
        assert [one.compute for one in node.control.instances(node.uuid())] == [(1,), (3,)]
        reported = node.driver.gpus().gpus[0].instances
        assert sorted((one.profile, one.start) for one in reported) == [(SMALL, 2), (HALF, 4)]
        assert node.instances(1) == []

    def test_an_instance_is_destroyed_by_its_number_and_others_stay(self, node: MigNode) -> None:
        node.control.set_mode(node.uuid(), enabled=True)
        for start in (0, 1):
            node.control.create(node.uuid(), SMALL, start, (1,))
        first, second = self.of(node)
        node.control.destroy(node.uuid(), first.number)
        assert self.of(node) == [second]
        node.control.destroy(node.uuid(), first.number)
        assert self.of(node) == [second]

    def test_a_place_that_is_taken_or_does_not_exist_is_refused(self, node: MigNode) -> None:
        node.control.set_mode(node.uuid(), enabled=True)
        node.control.create(node.uuid(), HALF, 0, (3,))
        assert "free slices" in fails("no-room", lambda: node.control.create(node.uuid(), SMALL, 3, (1,)))
        fails("no-room", lambda: node.control.create(node.uuid(), HALF, 2, (3,)))
        node.control.create(node.uuid(), f"{SMALL}+me", 4, (1,))
        fails("no-room", lambda: node.control.create(node.uuid(), f"{SMALL}+me", 5, (1,)))
        assert node.instances() == [(HALF, 0, 4), (f"{SMALL}+me", 4, 1)]

    def test_a_profile_of_another_model_and_a_gpu_without_mig_mode_are_not_supported(self, node: MigNode) -> None:
        fails("not-supported", lambda: node.control.create(node.uuid(), SMALL, 0, (1,)))
        node.control.set_mode(node.uuid(), enabled=True)
        fails("not-supported", lambda: node.control.create(node.uuid(), "1g.5gb", 0, (1,)))
        assert node.instances() == []

    def test_what_is_in_use_is_not_changed(self, node: MigNode) -> None:
        node.control.set_mode(node.uuid(), enabled=True)
        node.control.create(node.uuid(), SMALL, 0, (1,))
        (one,) = self.of(node)
        node.use(0, one.number)
        assert "in use by another client" in fails("in-use", lambda: node.control.destroy(node.uuid(), one.number))
        fails("in-use", lambda: node.control.set_mode(node.uuid(), enabled=False))
        node.use(1, None)
        fails("in-use", lambda: node.control.set_mode(node.uuid(1), enabled=True))
        assert self.of(node) == [one]

    def test_an_unknown_gpu_is_reported(self, node: MigNode) -> None:
        unknown = "GPU-ffffffff-0000-4000-8000-000000000000"
        for call in (
            lambda: node.control.instances(unknown),
            lambda: node.control.destroy(unknown, 1),
            lambda: node.control.create(unknown, SMALL, 0, (1,)),
        ):
            with pytest.raises(UnknownGpuError):
                call()

    def of(self, node: MigNode) -> list[GpuInstance]:
        return list(node.control.instances(node.uuid()))
