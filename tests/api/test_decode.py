"""Files in, checked objects out, or one line saying what is wrong where."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from shoal.api.decode import Unknown, convert, read, unique
from shoal.api.disruption import PriorityClass
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.taints import Toleration
from shoal.units.errors import UserError, Where
from shoal.units.quantity import Quantity

POD = """
apiVersion: v1
kind: Pod
metadata:
  name: train
  labels: {app: 'on', since: 2024-01-31}
  creationTimestamp: 2024-01-31T12:00:00Z
spec:
  containers:
  - name: main
    image: x
    command: [never, read]
    resources:
      limits: {cpu: 0.5, memory: 1e9, nvidia.com/gpu: 2}
      requests:
  initContainers:
  volumes: [{name: scratch, emptyDir: {}}]
"""

NODE = """
apiVersion: v1
kind: Node
metadata: {name: n1, creationTimestamp: null}
status: {capacity: {cpu: "8", nvidia.com/gpu: "8"}}
"""


def test_yaml_and_json_of_the_same_object_are_the_same_value() -> None:
    written = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train",
            "labels": {"app": "on", "since": "2024-01-31"},
            "creationTimestamp": "2024-01-31T12:00:00Z",
        },
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "x",
                    "resources": {"limits": {"cpu": 0.5, "memory": 1e9, "nvidia.com/gpu": 2}, "requests": None},
                }
            ],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
        },
    }
    (yaml_pod,), (json_pod,) = read(POD), read(json.dumps(written))
    assert yaml_pod.value == json_pod.value


def test_a_pod_is_read_with_everything_a_scheduler_needs() -> None:
    (document,) = read(POD, "pod.yaml")
    pod = document.value
    assert isinstance(pod, Pod)
    assert pod.metadata.key == "default/train"
    assert pod.metadata.labels == {"app": "on", "since": "2024-01-31"}
    assert pod.metadata.creation_timestamp == datetime(2024, 1, 31, 12, tzinfo=UTC)
    assert pod.spec.containers[0].resources.limits == {
        "cpu": Quantity.parse("500m"),
        "memory": Quantity.parse("1G"),
        "nvidia.com/gpu": Quantity.parse("2"),
    }
    assert str(document.where) == "pod.yaml: document 1 (Pod default/train)"


def test_many_documents_keep_their_order_and_number() -> None:
    documents = read(f"---\n{NODE}---\n---\n{POD}", "all.yaml")
    assert [str(d.where) for d in documents] == [
        "all.yaml: document 1 (Node n1)",
        "all.yaml: document 3 (Pod default/train)",
    ]


@pytest.mark.parametrize("write", [json.dumps, lambda value: f"# yaml\n{json.dumps(value)}"], ids=["json", "yaml"])
def test_lists_are_opened(write: Any) -> None:
    inner = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    mixed = {"apiVersion": "v1", "kind": "List", "items": [inner, {**inner, "metadata": {"name": "n2"}}]}
    assert [d.where.obj for d in read(write(mixed))] == ["Node n1", "Node n2"]


def test_items_of_a_list_of_one_kind_need_not_repeat_it() -> None:
    listed = {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "n1"}}]}
    (document,) = read(json.dumps(listed))
    assert isinstance(document.value, Node)


def test_an_empty_list_is_no_object() -> None:
    assert read('{"apiVersion":"v1","kind":"List","items":[]}') == []
    assert read('{"apiVersion":"v1","kind":"List","items":null}') == []
    assert read("") == []


def test_kinds_we_do_not_know_come_back_raw_with_their_name() -> None:
    (document,) = read("apiVersion: kueue.x-k8s.io/v1beta1\nkind: MultiKueueConfig\nmetadata: {name: q}\nspec: {a: 1}")
    value = document.value
    assert isinstance(value, Unknown)
    assert (value.api_version, value.kind, value.metadata.name) == ("kueue.x-k8s.io/v1beta1", "MultiKueueConfig", "q")
    assert value.raw["spec"] == {"a": 1}
    assert document.where.obj == "MultiKueueConfig q"


def test_a_known_name_of_another_group_is_another_kind() -> None:
    (document,) = read("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j}")
    assert isinstance(document.value, Unknown)


def test_a_byte_order_mark_is_no_character() -> None:
    assert len(read(b"\xef\xbb\xbf" + NODE.encode())) == 1


def test_a_flow_map_is_yaml_though_it_opens_with_a_brace() -> None:
    (document,) = read("{apiVersion: v1, kind: Node, metadata: {name: n1}}")
    assert document.where.obj == "Node n1"


def test_json_documents_may_follow_each_other_as_yaml_does() -> None:
    text = '{"apiVersion":"v1","kind":"Node","metadata":{"name":"%s"}}'
    assert [d.where.obj for d in read(f"{text % 'a'}\n---\n{text % 'b'}\n")] == ["Node a", "Node b"]


def test_names_to_be_generated_are_accepted() -> None:
    (document,) = read(POD.replace("name: train", "generateName: train-"))
    assert document.where.obj == "Pod default/train-*"


def test_one_value_can_be_read_alone() -> None:
    assert convert({"key": "a", "operator": "Exists", "value": None}, Toleration, Where()) == Toleration("a", "Exists")
    with pytest.raises(UserError, match=r"args\.tolerationSeconds: expected a whole number, got text"):
        convert({"tolerationSeconds": "soon"}, Toleration, Where(path="args"))


def spec(text: str) -> str:
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p, namespace: team-a}}\nspec: {text}"


BAD_FIELDS = {
    "a quantity with two points": (
        "{containers: [{resources: {limits: {memory: 1Gi, cpu: 1.5.2Gi}}}]}",
        'spec.containers[0].resources.limits.cpu: quantity "1.5.2Gi" has more than one decimal point; write e.g. 1.5Gi',
    ),
    "half a device": (
        "{containers: [{resources: {limits: {nvidia.com/gpu: 500m}}}]}",
        (
            'spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer; '
            "devices and other extended resources are counted in whole numbers"
        ),
    ),
    "a truth value for a quantity": (
        "{containers: [{resources: {limits: {cpu: true}}}]}",
        "spec.containers[0].resources.limits.cpu: expected a quantity, got true or false; write e.g. 2, 500m or 1.5Gi",
    ),
    "a number for a label": (
        "{containers: [{}], nodeSelector: {a: x, gpus: 8}}",
        "spec.nodeSelector.gpus: expected text, got a whole number (8); put it in quotes",
    ),
    "a word for a truth value": (
        "{containers: [{}], hostNetwork: 'yes'}",
        'spec.hostNetwork: expected true or false, got text ("yes")',
    ),
    "a map for a list": ("{containers: {}}", "spec.containers: expected a list, got a mapping"),
    "a list for the spec": ("[]", "spec: expected a mapping, got a list"),
    "an operator nobody knows": (
        "{containers: [{}], tolerations: [{key: a, operator: Foo}]}",
        'spec.tolerations[0].operator: unsupported value "Foo"; supported values are Equal, Exists, Gt, Lt',
    ),
    "a port beyond all ports": (
        "{containers: [{ports: [{}, {hostPort: 70000}]}]}",
        "spec.containers[0].ports[1].hostPort: must be at most 65535, got 70000",
    ),
    "a required field left out": (
        "{containers: [{}], topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}",
        "spec.topologySpreadConstraints[0].topologyKey: is required",
    ),
    "a skew of zero": (
        "{containers: [{}], topologySpreadConstraints: [{maxSkew: 0}]}",
        "spec.topologySpreadConstraints[0].maxSkew: must be at least 1, got 0",
    ),
    "the same spread twice": (
        (
            "{containers: [{}], topologySpreadConstraints: ["
            "{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}, "
            "{maxSkew: 2, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]}"
        ),
        "spec.topologySpreadConstraints[1]: duplicate of {z, DoNotSchedule}",
    ),
    "fewest domains for a soft spread": (
        (
            "{containers: [{}], topologySpreadConstraints: ["
            "{maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway, minDomains: 2}]}"
        ),
        "spec.topologySpreadConstraints[0].minDomains: is only for whenUnsatisfiable: DoNotSchedule",
    ),
    "a weight of zero": (
        (
            "{containers: [{}], affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
            "[{weight: 0, podAffinityTerm: {topologyKey: z}}]}}}"
        ),
        (
            "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
            "must be at least 1, got 0"
        ),
    ),
    "an affinity without its topology": (
        (
            "{containers: [{}], affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
            "[{topologyKey: ''}]}}}"
        ),
        (
            "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: "
            '"" is not a label key: name part must be non-empty'
        ),
    ),
    "label keys to match without a selector": (
        (
            "{containers: [{}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
            "[{topologyKey: z, matchLabelKeys: [a]}]}}}"
        ),
        (
            "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys: "
            "needs a labelSelector"
        ),
    ),
    "an impossible node affinity": (
        (
            "{containers: [{}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
            "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: [many]}]}]}}}}"
        ),
        (
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
            ".matchExpressions[0].values: operator Gt needs exactly one whole number"
        ),
    ),
    "a toleration of nothing": (
        "{containers: [{}], tolerations: [{operator: Equal}]}",
        "spec.tolerations[0].operator: operator must be Exists when key is empty",
    ),
    "a priority beyond 32 bits": (
        "{containers: [{}], priority: 99999999999}",
        "spec.priority: must be at most 2147483647, got 99999999999",
    ),
    "no containers": ("{containers: []}", "spec.containers: at least one container is required"),
    "two containers of one name": (
        "{containers: [{name: a}, {name: a}]}",
        'spec.containers[1].name: duplicate container name "a"',
    ),
    "a claim that is not the pod's": (
        "{containers: [{resources: {claims: [{name: gpu}]}}]}",
        'spec.containers[0].resources.claims[0].name: "gpu" is not one of the pod\'s resourceClaims',
    ),
    "a host port beside the host's network": (
        "{hostNetwork: true, containers: [{ports: [{containerPort: 80, hostPort: 81}]}]}",
        "spec.containers[0].ports[0].hostPort: must match containerPort 80 when hostNetwork is true",
    ),
}


@pytest.mark.parametrize(("text", "complaint"), BAD_FIELDS.values(), ids=BAD_FIELDS)
def test_a_bad_field_is_named_in_one_line(text: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        read(spec(text), "pods.yaml")
    assert str(refusal.value) == f"pods.yaml: document 1 (Pod team-a/p): {complaint}"


OBJECT = '"apiVersion":"v1","kind":"Node"'
BAD_FILES = {
    "a list at the top": ("- a\n- b", "f: document 1: expected an object with apiVersion and kind, got a list"),
    "a bare word": ("hello", "f: document 1: expected an object with apiVersion and kind, got text"),
    "no apiVersion": ("kind: Pod", "f: document 1: apiVersion: is required"),
    "no kind": ("apiVersion: v1", "f: document 1: kind: is required"),
    "a kind that is a number": ("apiVersion: v1\nkind: 3", "f: document 1: kind: expected text, got a whole number"),
    "no name": ("apiVersion: v1\nkind: Node", "f: document 1 (Node): metadata.name: is required"),
    "a name with a slash": (
        "apiVersion: v1\nkind: Node\nmetadata: {name: a/b}",
        'f: document 1 (Node a/b): metadata.name: "a/b" contains a blank or a slash',
    ),
    "a name that a shell would run": (
        "apiVersion: v1\nkind: Node\nmetadata: {name: 'n;id'}",
        'f: document 1 (Node n;id): metadata.name: "n;id" contains ;, which no name has',
    ),
    "a name that is an option": (
        "apiVersion: v1\nkind: Node\nmetadata: {name: '--all'}",
        'f: document 1 (Node --all): metadata.name: "--all" contains -, which no name has',
    ),
    "a prefix of names that a shell would run": (
        "apiVersion: v1\nkind: Node\nmetadata: {generateName: 'evil$(id>pwn)-'}",
        'f: document 1 (Node evil$(id>pwn)-*): metadata.generateName: "evil$(id>pwn)-" contains $, which no name has',
    ),
    "a prefix of names with a slash": (
        "apiVersion: v1\nkind: Node\nmetadata: {generateName: a/b-}",
        'f: document 1 (Node a/b-*): metadata.generateName: "a/b-" contains a blank or a slash',
    ),
    "a name that is a number": (
        "apiVersion: v1\nkind: Node\nmetadata: {name: 7}",
        "f: document 1 (Node): metadata.name: expected text, got a whole number (7); put it in quotes",
    ),
    "a nameless item of a list": (
        f'{{"apiVersion":"v1","kind":"List","items":[{{{OBJECT}}}]}}',
        "f: document 1 (Node): items[0].metadata.name: is required",
    ),
    "a bad item of a list": (
        f'{{"apiVersion":"v1","kind":"List","items":[{{{OBJECT},"metadata":{{"name":"n1"}},"spec":{{"taints":[{{}}]}}}}]}}',
        "f: document 1 (Node n1): spec.taints[0].key: is required",
    ),
    "metadata that is a list, in a kind we do not know": (
        "apiVersion: x/v1\nkind: X\nmetadata: []",
        "f: document 1 (X): metadata: expected a mapping, got a list",
    ),
    "a time that is none": (
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1, creationTimestamp: yesterday}",
        (
            "f: document 1 (Node n1): metadata.creationTimestamp: is not a time with its zone; "
            "write a time such as 2026-01-31T12:00:00Z"
        ),
    ),
    "a time without its zone": (
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1, creationTimestamp: '2024-01-31T12:00:00'}",
        "f: document 1 (Node n1): metadata.creationTimestamp: is not a time with its zone",
    ),
    "less than no memory": (
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {memory: -1Gi}}",
        'f: document 1 (Node n1): status.allocatable.memory: Invalid value: "-1Gi": must be greater than or equal to 0',
    ),
    "a class above the system's": (
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: top}\nvalue: 2000000000",
        (
            "f: document 1 (PriorityClass top): value: must be at most 1000000000, got 2000000000; "
            "higher values are kept for the system's own classes"
        ),
    ),
    "a broken second document": ("a: 1\n---\nb: [", "f: document 2: line 4, column 1: "),
    "broken JSON": ('{\n"a": 1,\n"b" 2}', "f: line 3, column 5: JSON is malformed: "),
    "JSON cut short": ('{"a": ', "f: line 1, column 7: Input data was truncated"),
    "an endless nest": ('{"a":' * 5000, "f: document 1: is nested too deeply"),
}


@pytest.mark.parametrize(("text", "complaint"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_refused_in_one_line(text: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        read(text, "f")
    assert str(refusal.value).startswith(complaint)
    assert str(refusal.value).isprintable()


def test_json_and_yaml_complain_alike() -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"resources": {"limits": {"cpu": "1x"}}}]},
    }
    complaints = set()
    for text in (json.dumps(body), "# yaml\n" + json.dumps(body)):
        with pytest.raises(UserError) as refusal:
            read(text, "f")
        complaints.add(str(refusal.value))
    assert len(complaints) == 1


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(UserError, match="f: line 1 is not UTF-8 text"):
        read(b"\xff\xfe", "f")
    with pytest.raises(UserError, match="f: line 2 is not UTF-8 text"):
        read(b'{"apiVersion":"v1","kind":"Node",\n"metadata":{"name":"n","labels":{"a":"\xff"}}}', "f")


def test_a_number_nobody_can_hold_is_refused() -> None:
    with pytest.raises(UserError, match="f: document 1: number out of range"):
        read('{"apiVersion":"v1","kind":"Node","metadata":{"name":"n","labels":{"a":5e99999}}}', "f")


def test_a_file_beyond_the_limit_is_not_even_opened() -> None:
    with pytest.raises(UserError, match="f: is larger than 1 MiB"):
        read(b" " * (2**20 + 1), "f", max_bytes=2**20)


def test_an_object_given_twice_is_refused_where_it_comes_again() -> None:
    documents = [*read(NODE, "a.yaml"), *read(POD, "a.yaml"), *read(NODE, "b.yaml")]
    with pytest.raises(UserError, match=r"^b\.yaml: document 1 \(Node n1\): metadata\.name: is given twice"):
        unique(documents)


def test_objects_of_one_name_may_differ_in_kind_or_namespace() -> None:
    other = POD.replace("name: train", "name: train\n  namespace: team-a")
    generated = POD.replace("name: train", "generateName: train-")
    documents = [*read(POD), *read(other), *read(NODE.replace("n1", "train")), *read(f"{generated}---{generated}")]
    unique(documents)
    with pytest.raises(UserError, match="is given twice"):
        unique([*documents, *read(other)])


def test_system_classes_may_be_that_high() -> None:
    (document,) = read(
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nvalue: 2000001000\n"
        "metadata: {name: system-node-critical}"
    )
    assert isinstance(document.value, PriorityClass)


def test_a_list_whose_items_are_no_list_says_so() -> None:
    with pytest.raises(UserError, match=r"^a\.json: document 1: items: expected a list, got a mapping$"):
        read('{"apiVersion": "v1", "kind": "List", "items": {"a": 1}}', "a.json")
