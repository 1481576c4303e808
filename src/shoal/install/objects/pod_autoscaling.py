"""The objects of the part `pod-autoscaling`: a Deployment with an account of its own, which may read Secrets, and the
Service by which the API server reaches its metrics APIs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.api.pod_autoscaling_rules import PodAutoscalingRules
from shoal.api.run_configuration import RUN_KIND, RUN_VERSION
from shoal.api.yaml_out import to_yaml
from shoal.data.permissions import POD_AUTOSCALING
from shoal.install.objects.configuration import CONFIG, config_map
from shoal.install.objects.deployments import METRICS_PORT, pod_autoscaling_deployment
from shoal.install.objects.network import monitored_service, policy, service
from shoal.install.objects.permissions import own_permissions
from shoal.install.release import Release
from shoal.install.values.reading import ChartValues

Obj = dict[str, Any]
NAME = f"shoal-{POD_AUTOSCALING}"
_RULES = PodAutoscalingRules()


def pod_autoscaling_objects(release: Release, values: ChartValues, nodes: int) -> Iterator[Obj]:
    """Without labels; none if the part is not installed."""
    if not values.get("podAutoscaling.enabled"):
        return
    yield from own_permissions(POD_AUTOSCALING, NAME, release.namespace)
    own = {
        "apiVersion": RUN_VERSION,
        "kind": RUN_KIND,
        "controllers": [POD_AUTOSCALING],
        # Of the pod; the Service leads there.
        "podAutoscaling": {"address": "0.0.0.0", "serviceNamespace": release.namespace},  # noqa: S104
    }
    config = config_map(f"{NAME}-config", release.namespace, {CONFIG: to_yaml(own)})
    yield config
    yield service(release, _RULES.service_name, POD_AUTOSCALING, (443, "metrics-apis"))
    yield monitored_service(release, f"{NAME}-metrics", POD_AUTOSCALING)
    if values.get("networkPolicies.enabled"):
        yield policy(release, NAME, POD_AUTOSCALING, (METRICS_PORT, _RULES.port))
    yield pod_autoscaling_deployment(release, values, config, nodes)
