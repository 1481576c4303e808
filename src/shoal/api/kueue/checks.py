"""Admission checks: permission of other controllers to start a workload, beyond its quota."""

from __future__ import annotations

from msgspec import field

from shoal.api.conditions import Condition, is_condition_true
from shoal.api.meta import ObjectMeta
from shoal.api.names import object_name_fault
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where, excerpt

LONGEST_CONTROLLER = 253
LONGEST_PARAMETERS = 63


class CheckParameters(ApiStruct, frozen=True):
    """The object that configures the check."""

    api_group: str
    kind: str
    name: str


class AdmissionCheckSpec(ApiStruct, frozen=True):
    controller_name: str
    parameters: CheckParameters | None = None


class AdmissionCheckStatus(ApiStruct, frozen=True):
    conditions: tuple[Condition, ...] = ()


class AdmissionCheck(ApiStruct, frozen=True):
    spec: AdmissionCheckSpec
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: AdmissionCheckStatus = field(default_factory=AdmissionCheckStatus)

    def is_active(self) -> bool:
        """A check whose controller has said nothing yet is not active."""
        return is_condition_true(self.status.conditions, "Active")


def check_admission_check(check: AdmissionCheck, where: Where) -> None:
    check_meta(check.metadata, where.below("metadata"))
    spec, where = check.spec, where.below("spec")
    if not spec.controller_name:
        raise UserError("is required", where=where.below("controllerName"))
    if len(spec.controller_name) > LONGEST_CONTROLLER:
        what = f"must be no more than {LONGEST_CONTROLLER} characters"
        raise UserError(what, where=where.below("controllerName"))
    if spec.parameters is not None:
        _check_parameters(spec.parameters, where.below("parameters"))


def _check_parameters(parameters: CheckParameters, where: Where) -> None:
    for name, text in (
        ("apiGroup", parameters.api_group),
        ("kind", parameters.kind),
        ("name", parameters.name),
    ):
        if not text:
            raise UserError("is required", where=where.below(name))
    if fault := object_name_fault(parameters.api_group):
        raise UserError(f"{excerpt(parameters.api_group)} is not an API group: {fault}", where=where.below("apiGroup"))
    if len(parameters.name) > LONGEST_PARAMETERS:
        raise UserError(f"must be no more than {LONGEST_PARAMETERS} characters", where=where.below("name"))
    if fault := object_name_fault(parameters.name):
        raise UserError(f"{excerpt(parameters.name)} is not an object name: {fault}", where=where.below("name"))
