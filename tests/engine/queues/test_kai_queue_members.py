"""Which queue of KAI pods and gangs are in, by their labels, as events on their way into the facts."""

from __future__ import annotations

from shoal.api.groups.kai import QUEUE_LABEL
from shoal.engine.asks import Ask
from shoal.engine.events import GroupGone, GroupSeen, PodArrived, PodGone
from shoal.engine.groups import GroupFacts
from shoal.engine.pod_identity import PodIdentity, PodLabels
from shoal.engine.queues.disciplines.kai.queue_members import DEFAULT_QUEUE, QueueMembers


def _pod(name: str, queue: str = "", group: str = "") -> PodArrived:
    labels = ((QUEUE_LABEL, queue),) if queue else ()
    return PodArrived(name, Ask(), who=PodIdentity(group=group, traits=PodLabels("ns", labels)))


def test_a_pod_without_a_group_is_one_of_its_own_until_it_is_gone() -> None:
    members = QueueMembers()
    group, pod = members.translated(_pod("ns/p", "team"))
    assert isinstance(group, GroupSeen)
    assert (group.group.name, group.group.minimum, group.group.queue) == ("ns/p", 1, "team")
    assert isinstance(pod, PodArrived)
    assert pod.who.group == "ns/p"
    assert members.translated(_pod("ns/p", "team")) == [pod], "the group is known"
    assert members.translated(PodGone("ns/p")) == [PodGone("ns/p"), GroupGone("ns/p")]
    assert members.translated(PodGone("ns/p")) == [PodGone("ns/p")]


def test_a_pod_that_gets_a_group_later_leaves_its_own() -> None:
    members = QueueMembers()
    members.translated(_pod("ns/p", "team"))
    later = _pod("ns/p", "team", "ns/g")
    assert members.translated(later) == [later, GroupGone("ns/p")]


def test_a_gang_of_another_project_is_in_the_queue_that_its_pods_name_whichever_comes_first() -> None:
    facts = GroupFacts("ns/g", 2)
    expected = GroupSeen(GroupFacts("ns/g", 2, queue="team"))
    first = QueueMembers()
    assert first.translated(GroupSeen(facts)) == [GroupSeen(facts)]
    pod = _pod("ns/p", "team", "ns/g")
    assert first.translated(pod) == [expected, pod]
    assert first.translated(pod) == [pod]
    second = QueueMembers()
    assert second.translated(pod) == [pod]
    assert second.translated(GroupSeen(facts)) == [expected]
    second.translated(GroupGone("ns/g"))
    assert second.translated(GroupSeen(facts)) == [GroupSeen(facts)]


def test_what_a_group_itself_names_counts_before_the_labels_of_its_pods() -> None:
    members = QueueMembers()
    seen = GroupSeen(GroupFacts("ns/g", 2, queue="own"))
    assert members.translated(seen) == [seen]
    pod = _pod("ns/p", "team", "ns/g")
    assert members.translated(pod) == [pod]


def test_the_default_queue_holds_nothing_back_until_it_exists() -> None:
    members = QueueMembers()
    seen = GroupSeen(GroupFacts("ns/g", 2, queue=DEFAULT_QUEUE))
    free = GroupSeen(GroupFacts("ns/g", 2))
    assert members.translated(seen) == [free]
    assert members.put_default(exists=True) == [seen]
    assert members.put_default(exists=True) == []
    assert members.translated(seen) == [seen]
    assert members.put_default(exists=False) == [free]
