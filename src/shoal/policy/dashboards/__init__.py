"""Dashboards of Grafana, as JSON that Grafana imports."""

from shoal.policy.dashboards.cost import COST
from shoal.policy.dashboards.fleet import FLEET
from shoal.policy.dashboards.mig import MIG
from shoal.policy.dashboards.node import NODE
from shoal.policy.dashboards.queues import QUEUES

DASHBOARDS = (FLEET, NODE, MIG, QUEUES, COST)
"""In the order in which they are listed."""
