"""Which objects a field selector means, and which fields it may ask about."""

import pytest

from shoal.api.field_selectors import parse_field_selector
from shoal.api.meta import ObjectMeta
from shoal.api.node import Node, NodeSpec
from shoal.api.pod import Pod, PodSpec, PodStatus
from shoal.units.errors import UserError

POD = Pod(
    ObjectMeta("train", "team-a"),
    PodSpec(node_name="n1", host_network=True),
    PodStatus(phase="Running"),
)

MATCHES = {
    "an empty text selects everything": ("", True),
    "by node": ("spec.nodeName=n1", True),
    "with two signs": ("spec.nodeName==n1", True),
    "by another node": ("spec.nodeName=n2", False),
    "unlike": ("status.phase!=Succeeded", True),
    "both": ("spec.nodeName=n1,status.phase!=Running", False),
    "an unset field is empty": ("status.nominatedNodeName=", True),
    "an unset field differs from any value": ("status.nominatedNodeName!=n1", True),
    "truth is spelled out": ("spec.hostNetwork=true", True),
    "the default scheduler": ("spec.schedulerName=default-scheduler", True),
    "by name and namespace": ("metadata.name=train,metadata.namespace=team-a", True),
    "empty terms are skipped": (",metadata.name=train,,", True),
    "a comma in a value is escaped": (r"metadata.name!=a\,b", True),
    "so is an equals sign": (r"metadata.name!=a\=b", True),
}


@pytest.mark.parametrize(("text", "want"), MATCHES.values(), ids=MATCHES)
def test_pods_are_selected_by_field(text: str, want: bool) -> None:
    assert parse_field_selector(text, "Pod").matches(POD) is want


def test_nodes_are_selected_by_being_cordoned() -> None:
    cordoned = Node(ObjectMeta("n1"), NodeSpec(unschedulable=True))
    assert parse_field_selector("spec.unschedulable=true", "Node").matches(cordoned)
    assert parse_field_selector("spec.unschedulable=false", "Node").matches(Node())


def test_an_escaped_comma_is_part_of_the_value() -> None:
    selector = parse_field_selector(r"metadata.name=a\,b\\c", "Pod")
    assert selector.requirements[0].value == r"a,b\c"


REFUSED = {
    "an unsupported field": ("spec.image=x", "Pod", "field label not supported for Pod: spec.image"),
    "a field of another kind": ("spec.nodeName=x", "Node", "not supported for Node: spec.nodeName"),
    "any field of an unknown kind": ("spec.x=1", "Gang", "supported are metadata.name, metadata.namespace"),
    "no comparison": ("metadata.name", "Pod", "does not compare a field"),
    "two comparisons": ("metadata.name=a=b", "Pod", "does not compare a field"),
    "an escape of nothing": ("metadata.name=a\\", "Pod", "does not compare a field"),
}


@pytest.mark.parametrize(("text", "kind", "complaint"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_asked_is_refused(text: str, kind: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        parse_field_selector(text, kind)
    assert complaint in str(refusal.value)
