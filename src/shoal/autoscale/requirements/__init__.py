"""The algebra of node requirements: what a pool offers, what a pod wants, and what both allow."""

from shoal.autoscale.requirements.admitted import ANY, NONE, AdmittedValues, admitted_values, only
from shoal.autoscale.requirements.labels import WELL_KNOWN, current_label
from shoal.autoscale.requirements.min_values import MinValues, min_values_of
from shoal.autoscale.requirements.requirement_set import RequirementSet, requirement_set

__all__ = [
    "ANY",
    "NONE",
    "WELL_KNOWN",
    "AdmittedValues",
    "MinValues",
    "RequirementSet",
    "admitted_values",
    "current_label",
    "min_values_of",
    "only",
    "requirement_set",
]
