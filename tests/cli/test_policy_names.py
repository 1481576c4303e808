"""Policy names as typed."""

from __future__ import annotations

import pytest

from shoal.cli.policy_names import parse_policies
from shoal.units.errors import UserError

KNOWN = ("Shoal", "Random", "GpuPacking", "FGD")

TYPED = {
    "one name": ("FGD", ["FGD"]),
    "any case": ("gpupacking", ["GpuPacking"]),
    "several, in the order given": ("fgd,SHOAL", ["FGD", "Shoal"]),
    "blanks around commas": (" fgd , Shoal", ["FGD", "Shoal"]),
    "a name twice counts once": ("FGD,fgd", ["FGD"]),
    "all of them": ("all", list(KNOWN)),
    "one first, then the rest": ("FGD,all", ["FGD", "Shoal", "Random", "GpuPacking"]),
}


@pytest.mark.parametrize(("text", "names"), TYPED.values(), ids=TYPED.keys())
def test_accepts(text: str, names: list[str]) -> None:
    assert parse_policies(text, KNOWN) == names


WRONG = {
    "a near miss gets a suggestion": ("GpuPaking", '"GpuPaking" is not a policy; did you mean GpuPacking?'),
    "nonsense gets the list": ("zzz", '"zzz" is not a policy; the policies are Shoal, Random, GpuPacking, FGD'),
    "an empty text": ("", "a policy name is empty"),
    "a comma too many": ("FGD,", "a policy name is empty"),
}


@pytest.mark.parametrize(("text", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_refuses(text: str, complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_policies(text, KNOWN)
    assert str(caught.value).startswith(f"--policy: {complaint}")
