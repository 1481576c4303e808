"""What objects say about themselves."""

import pytest

from shoal.api.conditions import Condition
from shoal.api.container import ANY_ADDRESS, Container, ContainerPort
from shoal.api.disruption import DisruptionBudgetSpec, PodDisruptionBudget
from shoal.api.meta import Namespace, ObjectMeta, OwnerReference
from shoal.api.node import Node, NodeStatus
from shoal.api.pod import Pod, PodSpec, PodStatus, PodTemplate
from shoal.api.taints import UNSCHEDULABLE, Toleration
from shoal.api.workloads import HOST_NETWORK_TOLERATION, DaemonSet, DaemonSetSpec, Job, JobSpec
from shoal.units.errors import UserError, Where
from shoal.units.quantity import Quantity


def ports(*ports: ContainerPort, host_network: bool = False, sidecar: bool = False) -> PodSpec:
    container = Container(ports=ports, restart_policy="Always" if sidecar else "")
    if sidecar:
        return PodSpec(init_containers=(container,), host_network=host_network)
    return PodSpec(containers=(container,), host_network=host_network)


PORTS = {
    "a container port alone takes nothing of the host": (ports(ContainerPort(80)), ()),
    "a host port is taken on every address": (ports(ContainerPort(80, 8080)), ((ANY_ADDRESS, "TCP", 8080),)),
    "or on one": (ports(ContainerPort(80, 8080, "10.0.0.1", "UDP")), (("10.0.0.1", "UDP", 8080),)),
    "on the host's network every port is one of the host's": (
        ports(ContainerPort(80), host_network=True),
        ((ANY_ADDRESS, "TCP", 80),),
    ),
    "a sidecar keeps its port": (ports(ContainerPort(80, 80), sidecar=True), ((ANY_ADDRESS, "TCP", 80),)),
    "the same port twice is taken once": (
        ports(ContainerPort(80, 80), ContainerPort(81, 80)),
        ((ANY_ADDRESS, "TCP", 80),),
    ),
}


@pytest.mark.parametrize(("spec", "want"), PORTS.values(), ids=PORTS)
def test_host_ports(spec: PodSpec, want: tuple[tuple[str, str, int], ...]) -> None:
    assert spec.host_ports() == want


BUDGETS = {
    "a number that must stay": (DisruptionBudgetSpec(min_available=2), 3, 3, 1),
    "a share that must stay, rounded up": (DisruptionBudgetSpec(min_available="50%"), 3, 3, 1),
    "a number that may go": (DisruptionBudgetSpec(max_unavailable=1), 3, 3, 1),
    "a share that may go, rounded up": (DisruptionBudgetSpec(max_unavailable="30%"), 4, 4, 2),
    "what is already gone counts": (DisruptionBudgetSpec(max_unavailable=1), 2, 3, 0),
    "never less than none": (DisruptionBudgetSpec(min_available=5), 3, 3, 0),
    "a budget that says nothing allows nothing": (DisruptionBudgetSpec(), 3, 3, 0),
}


@pytest.mark.parametrize(("spec", "healthy", "expected", "want"), BUDGETS.values(), ids=BUDGETS)
def test_a_budget_allows(spec: DisruptionBudgetSpec, healthy: int, expected: int, want: int) -> None:
    assert PodDisruptionBudget(spec=spec).allowed(healthy, expected) == want


BAD_BUDGETS = {
    "both bounds": (DisruptionBudgetSpec(1, 1), "cannot be both set"),
    "a negative number": (DisruptionBudgetSpec(-1), "spec.minAvailable: must be 0 or more"),
    "a number in quotes": (DisruptionBudgetSpec(max_unavailable="2"), "neither a whole number nor 0% to 100%"),
    "more than all": (DisruptionBudgetSpec("101%"), "neither a whole number nor 0% to 100%"),
}


@pytest.mark.parametrize(("spec", "complaint"), BAD_BUDGETS.values(), ids=BAD_BUDGETS)
def test_a_budget_is_refused(spec: DisruptionBudgetSpec, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        PodDisruptionBudget(spec=spec).check(Where())
    assert complaint in str(refusal.value)


def test_a_job_runs_no_more_pods_at_once_than_it_needs() -> None:
    assert Job(spec=JobSpec(parallelism=4, completions=2)).pods_at_once() == 2
    assert Job(spec=JobSpec(parallelism=4)).pods_at_once() == 4
    assert Job(spec=JobSpec(parallelism=4, suspend=True)).pods_at_once() == 0


def test_a_daemon_comes_to_cordoned_nodes() -> None:
    own = Toleration("a", "Exists")
    daemon = DaemonSet(spec=DaemonSetSpec(PodTemplate(spec=PodSpec(tolerations=(own,)))))
    assert own in daemon.tolerations()
    assert any(t.tolerates(UNSCHEDULABLE) for t in daemon.tolerations())
    assert HOST_NETWORK_TOLERATION not in daemon.tolerations()


def test_a_node_written_by_hand_is_ready_and_offers_its_capacity() -> None:
    node = Node(status=NodeStatus(capacity={"cpu": Quantity.of(8)}))
    assert node.is_ready()
    assert node.allocatable() == {"cpu": Quantity.of(8)}


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_node_that_says_it_is_not_ready_is_not(status: str) -> None:
    assert not Node(status=NodeStatus(conditions=(Condition("Ready", status),))).is_ready()


def test_a_pod_knows_whether_it_is_over() -> None:
    assert Pod(status=PodStatus(phase="Succeeded")).is_finished()
    assert not Pod(status=PodStatus(phase="Running")).is_finished()


def test_the_controller_is_the_owner_that_says_so() -> None:
    controller = OwnerReference("batch/v1", "Job", "j", "u", controller=True)
    assert ObjectMeta(owner_references=(OwnerReference(name="x"), controller)).controller() is controller
    assert ObjectMeta().controller() is None


def test_keys_carry_the_namespace_where_there_is_one() -> None:
    assert ObjectMeta("train", "team-a").key == "team-a/train"
    assert ObjectMeta("n1").key == "n1"


def test_a_namespace_can_be_selected_by_its_name() -> None:
    assert Namespace(ObjectMeta("team-a")).labels()["kubernetes.io/metadata.name"] == "team-a"
