"""Roles for people: for all users, and for viewers, editors and administrators of a namespace.

`admin`, `edit` and `view` have no rules of their own; they gather those of roles labelled for them, which is how
resources of a CustomResourceDefinition come to be in them. `GATHERED` names the label of each and the role it belongs
to.
"""

from __future__ import annotations

from shoal.data.role_lines import READ, READ_WRITE, WRITE

_HEALTH = "/healthz,/livez,/readyz,/version,/version/"
_EXEC = "pods/attach,pods/exec,pods/portforward,pods/proxy"
_SCALED = "deployments,deployments/rollback,deployments/scale,replicasets,replicasets/scale"
_VIEWED = "deployments,deployments/scale,deployments/status,replicasets,replicasets/scale,replicasets/status"

ROLES: dict[str, tuple[str, ...]] = {
    "cluster-admin": ("* * @*", "* * (paths)"),
    "system:discovery": (f"get {_HEALTH},/api,/api/*,/apis,/apis/*,/openapi,/openapi/*",),
    "system:public-info-viewer": (f"get {_HEALTH}",),
    "system:basic-user": (
        "create selfsubjectaccessreviews,selfsubjectrulesreviews @authorization.k8s.io",
        "create selfsubjectreviews @authentication.k8s.io",
    ),
    "system:monitoring": ("get /healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*",),
    "system:aggregate-to-admin": (
        "create localsubjectaccessreviews @authorization.k8s.io",
        f"{READ_WRITE} rolebindings,roles @rbac.authorization.k8s.io",
    ),
    "system:aggregate-to-edit": (
        f"{READ} {_EXEC},secrets,services/proxy",
        "impersonate serviceaccounts",
        f"{WRITE} pods,{_EXEC}",
        "create pods/eviction",
        (
            f"{WRITE} configmaps,events,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/scale,"
            "secrets,serviceaccounts,services,services/proxy"
        ),
        "create serviceaccounts/token",
        f"{WRITE} daemonsets,{_SCALED},statefulsets,statefulsets/scale @apps",
        f"{WRITE} horizontalpodautoscalers @autoscaling",
        f"{WRITE} cronjobs,jobs @batch",
        f"{WRITE} daemonsets,{_SCALED},ingresses,networkpolicies,replicationcontrollers/scale @extensions",
        f"{WRITE} poddisruptionbudgets @policy",
        f"{WRITE} ingresses,networkpolicies @networking.k8s.io",
        f"{READ_WRITE} leases @coordination.k8s.io",
        f"{WRITE} resourceclaims,resourceclaimtemplates @resource.k8s.io",
    ),
    "system:aggregate-to-view": (
        (
            f"{READ} configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,"
            "replicationcontrollers,replicationcontrollers/scale,serviceaccounts,services,services/status"
        ),
        (
            f"{READ} bindings,events,limitranges,namespaces/status,pods/log,pods/status,replicationcontrollers/status,"
            "resourcequotas,resourcequotas/status"
        ),
        f"{READ} namespaces",
        f"{READ} endpointslices @discovery.k8s.io",
        (
            f"{READ} controllerrevisions,daemonsets,daemonsets/status,{_VIEWED},statefulsets,statefulsets/scale,"
            "statefulsets/status @apps"
        ),
        f"{READ} horizontalpodautoscalers,horizontalpodautoscalers/status @autoscaling",
        f"{READ} cronjobs,cronjobs/status,jobs,jobs/status @batch",
        (
            f"{READ} daemonsets,daemonsets/status,{_VIEWED},ingresses,ingresses/status,networkpolicies,"
            "replicationcontrollers/scale @extensions"
        ),
        f"{READ} poddisruptionbudgets,poddisruptionbudgets/status @policy",
        f"{READ} ingresses,ingresses/status,networkpolicies @networking.k8s.io",
        f"{READ} resourceclaims,resourceclaims/status,resourceclaimtemplates @resource.k8s.io",
    ),
}

_PREFIX = "rbac.authorization.k8s.io/aggregate-to-"
GATHERED: dict[str, str] = {name: _PREFIX + name for name in ("admin", "edit", "view")}

LABELS: dict[str, str] = {
    "system:aggregate-to-admin": GATHERED["admin"],
    "edit": GATHERED["admin"],
    "system:aggregate-to-edit": GATHERED["edit"],
    "view": GATHERED["edit"],
    "system:aggregate-to-view": GATHERED["view"],
}

_EVERYBODY = ("Group system:authenticated", "Group system:unauthenticated")
BINDINGS: dict[str, tuple[str, ...]] = {
    "cluster-admin": ("Group system:masters",),
    "system:monitoring": ("Group system:monitoring",),
    "system:discovery": _EVERYBODY[:1],
    "system:basic-user": _EVERYBODY[:1],
    "system:public-info-viewer": _EVERYBODY,
}
