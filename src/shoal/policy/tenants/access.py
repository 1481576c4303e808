"""The roles of a team: what its admins, developers and viewers may do in the namespace of the team, and nowhere else.

No role may change the quota, the LimitRange, NetworkPolicies, the queue or the namespace itself, or impersonate.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.data.role_lines import READ, READ_WRITE, rules
from shoal.policy.advice import Obj
from shoal.policy.tenants.labels import labelled
from shoal.policy.tenants.team import ACCOUNT_PREFIX, ROLES, USER_PREFIX, Role, Team, subjects

_RBAC = "rbac.authorization.k8s.io"
_VIEW = (
    f"{READ} configmaps,endpoints,events,limitranges,persistentvolumeclaims,pods,replicationcontrollers,resourcequotas",
    f"{READ} pods/log,pods/status,serviceaccounts,services",
    f"{READ} controllerrevisions,daemonsets,deployments,replicasets,statefulsets @apps",
    f"{READ} cronjobs,jobs @batch",
    f"{READ} horizontalpodautoscalers @autoscaling",
    f"{READ} networkpolicies @networking.k8s.io",
    f"{READ} poddisruptionbudgets @policy",
    f"{READ} resourceclaims,resourceclaimtemplates @resource.k8s.io",
    f"{READ} localqueues,workloads @kueue.x-k8s.io",
    f"{READ} roles,rolebindings @rbac.authorization.k8s.io",
)
_DEVELOP = (
    *_VIEW,
    f"{READ_WRITE} configmaps,persistentvolumeclaims,pods,secrets,services",
    "create,get pods/attach,pods/exec,pods/portforward",
    "create pods/eviction",
    "create,patch events @,events.k8s.io",
    f"{READ_WRITE} deployments,replicasets,statefulsets @apps",
    "get,patch,update deployments/scale,replicasets/scale,statefulsets/scale @apps",
    f"{READ_WRITE} cronjobs,jobs @batch",
    f"{READ_WRITE} horizontalpodautoscalers @autoscaling",
    f"{READ_WRITE} poddisruptionbudgets @policy",
    f"{READ_WRITE} resourceclaims,resourceclaimtemplates @resource.k8s.io",
    f"{READ_WRITE} jaxjobs,mpijobs,paddlejobs,pytorchjobs,tfjobs,xgboostjobs @kubeflow.org",
    f"{READ_WRITE} trainjobs @trainer.kubeflow.org",
    f"{READ_WRITE} jobsets @jobset.x-k8s.io",
    f"{READ_WRITE} rayclusters,rayjobs,rayservices @ray.io",
    f"{READ_WRITE} leaderworkersets @leaderworkerset.x-k8s.io",
    f"{READ_WRITE} inferenceservices @serving.kserve.io",
    f"{READ_WRITE} scaledjobs,scaledobjects,triggerauthentications @keda.sh",
    f"{READ_WRITE} podgroups @scheduling.x-k8s.io",
)
_ADMINISTER = (
    *_DEVELOP,
    f"{READ_WRITE} serviceaccounts",
    "create serviceaccounts/token",
    f"{READ_WRITE} roles,rolebindings @rbac.authorization.k8s.io",
)
_LINES: dict[Role, tuple[str, ...]] = {"viewer": _VIEW, "developer": _DEVELOP, "admin": _ADMINISTER}


def role_name(role: Role) -> str:
    return f"team-{role}"


def access_objects(team: Team) -> list[Obj]:
    return list(_objects(team))


def _objects(team: Team) -> Iterator[Obj]:
    version = f"{_RBAC}/v1"
    for role in ROLES:
        yield labelled(team, version, "Role", role_name(role), rules=rules(_LINES[role]))
    for role in ROLES:
        members = [_subject(name) for own, name in subjects(team) if own == role]
        if members:
            reference = {"apiGroup": _RBAC, "kind": "Role", "name": role_name(role)}
            yield labelled(team, version, "RoleBinding", role_name(role), roleRef=reference, subjects=members)


def _subject(name: str) -> Obj:
    if name.startswith(ACCOUNT_PREFIX):
        namespace, _, account = name.removeprefix(ACCOUNT_PREFIX).partition("/")
        return {"kind": "ServiceAccount", "namespace": namespace, "name": account}
    if name.startswith(USER_PREFIX):
        return {"apiGroup": _RBAC, "kind": "User", "name": name.removeprefix(USER_PREFIX)}
    return {"apiGroup": _RBAC, "kind": "Group", "name": name}
