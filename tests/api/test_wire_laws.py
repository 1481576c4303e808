"""What is written as JSON is read back as the same value, whichever way it is read."""

from datetime import UTC, datetime

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.container import Container, ContainerPort, Resources
from shoal.api.decode import convert
from shoal.api.meta import ObjectMeta
from shoal.api.node import Node, NodeSpec, NodeStatus
from shoal.api.pod import Pod, PodSpec, PodStatus
from shoal.api.taints import Taint, Toleration
from shoal.api.wire import dec_hook, to_json
from shoal.units.errors import Where
from shoal.units.quantity import Quantity

names = st.text("abc-", min_size=1, max_size=6)
labels = st.dictionaries(names, names, max_size=3)
times = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]),
    st.builds(lambda n, suffix: Quantity.parse(f"{n}{suffix}"), st.integers(0, 9999), st.sampled_from(["", "m", "Gi"])),
)
metas = st.builds(ObjectMeta, name=names, namespace=names, labels=labels, creation_timestamp=st.none() | times)
nodes = st.builds(
    Node,
    metadata=metas,
    spec=st.builds(
        NodeSpec,
        taints=st.lists(st.builds(Taint, names, st.sampled_from(["NoSchedule", "NoExecute"]), names)).map(tuple),
        unschedulable=st.booleans(),
    ),
    status=st.builds(NodeStatus, capacity=amounts),
)
pods = st.builds(
    Pod,
    metadata=metas,
    spec=st.builds(
        PodSpec,
        containers=st.lists(
            st.builds(
                Container,
                name=names,
                resources=st.builds(Resources, amounts, amounts),
                ports=st.lists(st.builds(ContainerPort, st.integers(0, 65535), host_ip=names), max_size=2).map(tuple),
            ),
            max_size=2,
        ).map(tuple),
        node_selector=labels,
        tolerations=st.lists(st.builds(Toleration, names, st.sampled_from(["Exists", "Gt", ""])), max_size=2).map(
            tuple
        ),
        priority=st.none() | st.integers(-5, 5),
        host_network=st.booleans(),
    ),
    status=st.builds(PodStatus, phase=names, pod_ip=names),
)


@given(st.one_of(nodes, pods))
def test_json_gives_back_an_equal_value(value: Node | Pod) -> None:
    assert msgspec.json.decode(to_json(value), type=type(value), dec_hook=dec_hook) == value


@given(st.one_of(nodes, pods))
def test_both_ways_of_reading_agree(value: Node | Pod) -> None:
    plain = msgspec.json.decode(to_json(value))
    assert convert(plain, type(value), Where()) == value
