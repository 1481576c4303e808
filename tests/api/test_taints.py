"""Which taints a pod can bear."""

import pytest

from shoal.api.taints import (
    UNSCHEDULABLE,
    Effect,
    Taint,
    Toleration,
    check_taints,
    count_untolerated,
    untolerated,
)
from shoal.units.errors import UserError, Where

GPU = Taint("nvidia.com/gpu", "NoSchedule", "present")
PRICE = Taint("price", "NoSchedule", "60")

TOLERATED = {
    "key, value and effect alike": (Toleration("nvidia.com/gpu", "Equal", "present", "NoSchedule"), GPU, True),
    "the operator is Equal where none is given": (Toleration("nvidia.com/gpu", value="present"), GPU, True),
    "also where it is empty": (Toleration("nvidia.com/gpu", "", "present"), GPU, True),
    "another value": (Toleration("nvidia.com/gpu", value="no"), GPU, False),
    "no value is a value, the empty one": (Toleration("nvidia.com/gpu"), GPU, False),
    "Exists takes any value": (Toleration("nvidia.com/gpu", "Exists"), GPU, True),
    "another key": (Toleration("amd.com/gpu", "Exists"), GPU, False),
    "another effect": (Toleration("nvidia.com/gpu", "Exists", effect="NoExecute"), GPU, False),
    "no effect stands for every effect": (Toleration("nvidia.com/gpu", "Exists", effect=""), GPU, True),
    "no key and Exists stand for everything": (Toleration("", "Exists"), GPU, True),
    "everything of one effect": (Toleration("", "Exists", effect="NoExecute"), GPU, False),
    "a cordon": (Toleration("node.kubernetes.io/unschedulable", "Exists"), UNSCHEDULABLE, True),
    "Gt: the taint above the bound": (Toleration("price", "Gt", "50"), PRICE, True),
    "Gt: the taint at the bound": (Toleration("price", "Gt", "60"), PRICE, False),
    "Lt: the taint below the bound": (Toleration("price", "Lt", "100"), PRICE, True),
    "Lt: the taint above the bound": (Toleration("price", "Lt", "50"), PRICE, False),
    "Lt: numbers, not text": (Toleration("price", "Lt", "7"), PRICE, False),
    "Gt: a taint that is no number": (Toleration("nvidia.com/gpu", "Gt", "0"), GPU, False),
    "Gt: a bound that is no number": (Toleration("price", "Gt", "low"), PRICE, False),
}


@pytest.mark.parametrize(("toleration", "taint", "want"), TOLERATED.values(), ids=TOLERATED)
def test_a_toleration_covers_a_taint(toleration: Toleration, taint: Taint, want: bool) -> None:
    assert toleration.tolerates(taint) is want


def test_the_first_taint_nobody_tolerates_is_named() -> None:
    assert untolerated([GPU, PRICE], [Toleration("nvidia.com/gpu", "Exists")]) is PRICE
    assert untolerated([GPU, PRICE], [Toleration("", "Exists")]) is None


def test_soft_taints_keep_nobody_out() -> None:
    soft = Taint("slow", "PreferNoSchedule")
    assert untolerated([soft], []) is None
    assert untolerated([soft], [], effects={"PreferNoSchedule"}) is soft


def test_soft_taints_left_over_are_counted() -> None:
    effects: list[Effect] = ["PreferNoSchedule", "PreferNoSchedule", "NoSchedule"]
    taints = [Taint(key, effect) for key, effect in zip("abc", effects, strict=True)]
    assert count_untolerated(taints, []) == 2
    assert count_untolerated(taints, [Toleration("a", "Exists")]) == 1
    # A toleration of hard effects only does not help against a soft taint.
    assert count_untolerated(taints, [Toleration("", "Exists", effect="NoSchedule")]) == 2


REFUSED = {
    "no key without Exists": (Toleration(""), "operator must be Exists when key is empty"),
    "a value with Exists": (Toleration("a", "Exists", "b"), "value must be empty"),
    "seconds without NoExecute": (Toleration("a", "Exists", toleration_seconds=1), "must be NoExecute"),
    "a key that is none": (Toleration("a b", "Exists"), "t.key: "),
    "a value that is none": (Toleration("a", value="b c"), "t.value: "),
    "Gt without a number": (Toleration("a", "Gt", "x"), "plain whole number"),
    "Gt with a leading zero": (Toleration("a", "Gt", "0100"), "plain whole number"),
    "Lt with a plus sign": (Toleration("a", "Lt", "+5"), "plain whole number"),
    "Lt beyond 64 bits": (Toleration("a", "Lt", "9" * 19), "plain whole number"),
}


@pytest.mark.parametrize(("toleration", "complaint"), REFUSED.values(), ids=REFUSED)
def test_tolerations_the_api_server_refuses(toleration: Toleration, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        toleration.check(Where(path="t"))
    assert complaint in str(refusal.value)


BAD_TAINTS = {
    "the same key and effect twice": ((GPU, Taint(GPU.key, "NoSchedule", "x")), "taints[1]: duplicate taint"),
    "a key that is none": ((Taint("a b", "NoSchedule"),), "taints[0].key"),
    "a value that is none": ((Taint("a", "NoSchedule", "b c"),), "taints[0].value"),
}


@pytest.mark.parametrize(("taints", "complaint"), BAD_TAINTS.values(), ids=BAD_TAINTS)
def test_taints_the_api_server_refuses(taints: tuple[Taint, ...], complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        check_taints(taints, Where(path="taints"))
    assert complaint in str(refusal.value)


def test_a_taint_reads_as_kubectl_writes_it() -> None:
    assert str(GPU) == "nvidia.com/gpu=present:NoSchedule"
    assert str(UNSCHEDULABLE) == "node.kubernetes.io/unschedulable:NoSchedule"
