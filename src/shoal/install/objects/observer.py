"""The objects of an installation that only observes: a Deployment whose account has no verb that writes."""

from __future__ import annotations

from typing import Any

from shoal.data.permissions import OBSERVER as OBSERVER_LINES
from shoal.install.objects.deployments import OBSERVER, observer_deployment
from shoal.install.objects.network import observer_network
from shoal.install.objects.permissions import observer_permissions
from shoal.install.release import Release
from shoal.install.values.reading import ChartValues

Obj = dict[str, Any]


def observer_objects(release: Release, values: ChartValues, nodes: int) -> list[Obj]:
    """Without the namespace and without labels."""
    return [
        *observer_permissions(OBSERVER_LINES, OBSERVER, release.namespace),
        *observer_network(release, values),
        observer_deployment(release, values, nodes),
    ]
