"""Checks what the triggers of ScaledObjects and the hours of CapacityBuffers say: credentials, queries, time zones."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.kinds import MISPLACED_SCALED_OBJECT, SCALED_OBJECT
from shoal.policy.promql_tokens import bracket_fault
from shoal.units.calendar_windows import zone_of
from shoal.units.errors import UserError

_BUFFER_ZONE = "shoal.dev/buffer-time-zone"
_OF_AWS = ("aws-sqs-queue", "aws-cloudwatch", "aws-kinesis-stream", "aws-dynamodb", "aws-dynamodb-streams")
_ZONE_FIX = "write a name of the time zone database, such as UTC or Europe/Berlin"


@check(
    Rule(
        "SHL-710",
        "TriggerWithoutCredentials",
        "warning",
        fault="a trigger that reads from AWS names no credentials",
        effect="KEDA cannot read the queue, so nothing scales",
        fix="name a TriggerAuthentication, or set identityOwner: operator where KEDA has the rights itself",
        links=("https://keda.sh/docs/latest/scalers/aws-sqs/",),
        bad="""\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: serve}
spec:
  scaleTargetRef: {name: serve}
  triggers:
  - type: aws-sqs-queue
    metadata: {queueURL: "https://sqs.eu-west-1.amazonaws.com/1/q", queueLength: "10", awsRegion: eu-west-1}
""",
        changes=(Change("  - type: aws-sqs-queue\n", "  - type: aws-sqs-queue\n    authenticationRef: {name: aws}\n"),),
    ),
    also={
        "InvalidExpression": "Prometheus cannot read an expression or a duration, and refuses the whole group",
        "UnknownTimeZone": "the time zone database has no time zone of this name",
    },
    kinds=(SCALED_OBJECT, MISPLACED_SCALED_OBJECT),
)
def triggers(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for at, trigger in enumerate(maps(dig(obj, "spec", "triggers"))):
        here, metadata = f"spec.triggers[{at}]", string_keys(trigger.get("metadata"))
        has_rights = trigger.get("authenticationRef") or metadata.get("identityOwner") == "operator"
        if trigger.get("type") in _OF_AWS and not has_rights and not any(key.endswith("FromEnv") for key in metadata):
            yield Advice(
                "TriggerWithoutCredentials",
                here,
                f"{trigger['type']} names no credentials: KEDA cannot read from AWS",
                "name a TriggerAuthentication in authenticationRef, or set metadata.identityOwner: operator",
            )
        query = metadata.get("query")
        if trigger.get("type") == "prometheus" and isinstance(query, str) and (fault := bracket_fault(query)):
            yield Advice("InvalidExpression", f"{here}.metadata.query", *fault)
        if trigger.get("type") == "cron":
            yield from _zone(f"{here}.metadata.timezone", metadata.get("timezone"))


@check(
    Rule(
        "SHL-711",
        "UnknownTimeZone",
        "error",
        fault="the time zone database has no time zone of this name",
        effect="the hours are not applied",
        fix=_ZONE_FIX,
        bad="""\
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: office, namespace: ml, annotations: {shoal.dev/buffer-time-zone: Europe/Berln}}
spec: {replicas: 1, podTemplateRef: {name: small}}
""",
        changes=(Change("Berln", "Berlin"),),
    ),
    options=CheckOptions(in_files=True),
)
def buffer_hours(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    annotations = string_keys(dig(obj, "metadata", "annotations"))
    if obj.get("kind") == "CapacityBuffer":
        yield from _zone(f"metadata.annotations[{_BUFFER_ZONE}]", annotations.get(_BUFFER_ZONE))


def _zone(here: str, name: object) -> Iterator[Advice]:
    if not isinstance(name, str) or not name:
        return
    try:
        zone_of(name)
    except UserError:
        yield Advice("UnknownTimeZone", here, f"{name} is no time zone", _ZONE_FIX)
