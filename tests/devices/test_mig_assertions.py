"""How a layout compares with the GPUs, and the steps by which mig-parted would apply it."""

from __future__ import annotations

from typing import Any

from shoal.data.mig import layout
from shoal.devices.gpu_clients import PAUSED, after_change, while_changing
from shoal.devices.mig_assertions import attempts, layout_matches, mig_parted_steps, mode_matches
from shoal.devices.mig_gpus import MigGpu, layout_of_pci_id
from shoal.devices.mig_layouts import MigSpec
from shoal.devices.pci_ids import PciId

A100 = 0x20B010DE
HALVES, SEVEN = (("3g.20gb", 2),), (("1g.5gb", 7),)


def gpu(index: int, **fields: Any) -> MigGpu:
    return MigGpu(index=index, pci=(PciId(A100),), facts=layout("A100-40GB"), **fields)


def test_a_gpu_without_an_entry_does_not_match_the_layout() -> None:
    only_first = (MigSpec(enabled=True, counts=HALVES, devices=(0,)),)
    gpus = [gpu(0, is_mig=True, counts=HALVES), gpu(1)]
    assert mode_matches(only_first, gpus)
    assert not layout_matches(only_first, gpus)
    assert layout_matches((*only_first, MigSpec(enabled=False, devices=(1,))), gpus)


def test_the_last_entry_of_a_gpu_counts() -> None:
    specs = (MigSpec(enabled=True, counts=SEVEN), MigSpec(enabled=True, counts=HALVES, devices=(1,)))
    gpus = [gpu(0, is_mig=True, counts=SEVEN), gpu(1, is_mig=True, counts=HALVES)]
    assert layout_matches(specs, gpus)
    assert not layout_matches(specs, [gpus[0], gpu(1, is_mig=True, counts=SEVEN)])


def test_a_gpu_without_mig_matches_only_what_disables_mig() -> None:
    plain = [gpu(0, is_capable=False)]
    assert layout_matches((MigSpec(enabled=False),), plain)
    assert not layout_matches((MigSpec(enabled=True),), plain)
    assert not mode_matches((MigSpec(enabled=True),), plain)


def test_the_mode_of_all_gpus_of_the_layout_is_set_if_that_of_one_differs() -> None:
    gpus = [gpu(0, is_mig=True, counts=SEVEN), gpu(1)]
    run = mig_parted_steps((MigSpec(enabled=True, counts=SEVEN),), gpus)
    assert [step for step in run.steps if not step.startswith("hook")] == [
        *("clear 0", "mode 0 enabled", "mode 1 enabled"),
        f"instances 0 {','.join(['1g.5gb'] * 7)}",
        f"instances 1 {','.join(['1g.5gb'] * 7)}",
    ]
    assert [one.counts for one in run.after] == [SEVEN, SEVEN]


def test_all_gpus_are_reset_where_one_needs_it() -> None:
    run = mig_parted_steps((MigSpec(enabled=True),), [gpu(0, needs_reset=True), gpu(1)], mode_only=True)
    assert run.steps[2:] == ("mode 0 enabled", "mode 1 enabled", "reset all", "hook apply-exit")
    assert all(one.is_mig for one in run.after)


def test_an_entry_for_all_passes_over_gpus_without_mig_and_one_by_index_fails() -> None:
    gpus = [gpu(0, is_capable=False), gpu(1)]
    assert mig_parted_steps((MigSpec(enabled=True, counts=HALVES),), gpus).after[1].counts == HALVES
    run = mig_parted_steps((MigSpec(enabled=True, counts=HALVES, devices=(0, 1)),), gpus)
    assert run.problem is not None
    assert "cannot set MIG mode on non MIG-capable GPU" in str(run.problem)
    assert run.steps[-1] == "hook apply-exit"
    assert not run.after[1].is_mig


def test_an_impossible_layout_leaves_its_gpu_without_instances() -> None:
    gpus = [gpu(0, is_mig=True, counts=SEVEN)]
    run = mig_parted_steps((MigSpec(enabled=True, counts=(("3g.20gb", 3),)),), gpus)
    assert "nearest possible layout is 2 x 3g.20gb" in str(run.problem)
    assert run.after[0].counts == ()


def test_equal_instances_have_no_orders_among_themselves() -> None:
    assert attempts((("1g.5gb", 7),)) == 1
    assert attempts((("1g.5gb", 2), ("2g.10gb", 1), ("3g.20gb", 1))) == 12
    assert attempts(()) == 1


def test_a_model_is_found_by_its_pci_id() -> None:
    found = layout_of_pci_id("0x20b010de")
    assert found is not None
    assert found.name == "A100-40GB"
    assert layout_of_pci_id("0x12345678") is None


def test_a_component_that_is_switched_off_stays_off() -> None:
    assert (while_changing("false"), after_change("false")) == ("false", "false")
    for value in ("true", None, PAUSED):
        assert (while_changing(value), after_change(value)) == (PAUSED, "true")
