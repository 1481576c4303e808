"""The sizes of Kueue's pod groups, counted once for all pods: equal to counting each group's members anew."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shoal.api.meta import ObjectMeta
from shoal.api.pod import Pod, PodSpec, PodStatus
from shoal.engine.from_api.membership import KUEUE_GROUP_LABEL
from shoal.sim.held_by_queues import group_sizes

NAMES = st.sampled_from(["", "a", "b"])
PHASES = st.sampled_from(["Pending", "Running", "Succeeded", "Failed"])


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    group = draw(st.none() | NAMES)
    labels = {} if group is None else {KUEUE_GROUP_LABEL: group}
    metadata = ObjectMeta(namespace=draw(NAMES), labels=labels)
    return Pod(metadata=metadata, spec=PodSpec(), status=PodStatus(phase=draw(PHASES)))


@given(st.lists(pods(), max_size=20))
def test_each_group_has_as_many_members_as_there_are_pods_of_it_that_have_not_failed(found: list[Pod]) -> None:
    sizes = group_sizes(found)
    for namespace in ("", "a", "b"):
        for group in ("a", "b"):
            members = [
                pod
                for pod in found
                if pod.metadata.labels.get(KUEUE_GROUP_LABEL) == group
                and pod.metadata.namespace == namespace
                and pod.status.phase != "Failed"
            ]
            assert sizes.get((namespace, group), 0) == len(members)
