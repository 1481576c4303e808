"""What every adapter for compute modes must do, checked on a node with two GPUs: see `ComputeModesContract`."""

from __future__ import annotations

import msgspec
import pytest

from shoal.devices.compute_mode import COMPUTE_MODES, ComputeModeError, ComputeModes


class ModeNode(msgspec.Struct):
    modes: ComputeModes
    uuids: tuple[str, str]


class ComputeModesContract:
    """Subclasses have a fixture `node`: two GPUs in the default mode."""

    def test_each_mode_is_set_for_one_gpu_only(self, node: ModeNode) -> None:
        first, second = node.uuids
        for mode in COMPUTE_MODES:
            node.modes.set_mode(first, mode)
            node.modes.set_mode(first, mode)
            assert (node.modes.mode(first), node.modes.mode(second)) == (mode, "default")

    def test_a_gpu_that_does_not_exist_is_an_error(self, node: ModeNode) -> None:
        with pytest.raises(ComputeModeError, match=r"cannot read the compute mode of GPU-9: there is no such GPU"):
            node.modes.mode("GPU-9")
        with pytest.raises(ComputeModeError, match=r"cannot set the compute mode of GPU-9 to default: there is no"):
            node.modes.set_mode("GPU-9", "default")
