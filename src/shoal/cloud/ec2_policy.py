"""Lists what node scaling asks of EC2, and writes the IAM policy that allows this and nothing else.

Guarantees: instances and their tags can be created with the tag of the cluster only, and only instances with that tag
can be ended. What EC2 can list is not restricted, because EC2 has no such restriction.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from shoal.cloud.port import CLUSTER_TAG

READS: Final = (
    "DescribeInstances",
    "DescribeInstanceTypeOfferings",
    "DescribeInstanceTypes",
    "DescribeLaunchTemplates",
    "DescribeSpotPriceHistory",
    "DescribeSubnets",
)
QUEUE: Final = ("DeleteMessage", "GetQueueUrl", "ReceiveMessage")
"""Of SQS, where a queue with notices is named."""
WRITES: Final = ("CreateTags", "RunInstances", "TerminateInstances")
_USED: Final = ("image", "launch-template", "network-interface", "security-group", "subnet")
"""What a new instance uses, which has no tag of the cluster."""
_CREATED: Final = ("instance", "network-interface", "volume", "spot-instances-request")


class PolicyScope(msgspec.Struct, frozen=True):
    cluster: str
    region: str = "*"
    account: str = "*"
    node_role: str = ""
    """Without it, a launch template must not name an instance profile."""
    interruption_queue: str = ""


def iam_policy(scope: PolicyScope) -> dict[str, Any]:
    def arn(kind: str) -> str:
        # Images of Amazon belong to no account of the user.
        account = "*" if kind == "image" else scope.account
        return f"arn:aws:ec2:{scope.region}:{account}:{kind}/*"

    created = {"StringEquals": {f"aws:RequestTag/{CLUSTER_TAG}": scope.cluster}}
    tagging = {"StringEquals": {"ec2:CreateAction": "RunInstances"}}
    owned = {"StringEquals": {f"aws:ResourceTag/{CLUSTER_TAG}": scope.cluster}}
    statements: list[dict[str, Any]] = [
        _allow("Look", [f"ec2:{name}" for name in READS], "*"),
        _allow("UseWhatIsThere", "ec2:RunInstances", [arn(kind) for kind in _USED]),
        _allow("CreateOwnInstances", "ec2:RunInstances", [arn(kind) for kind in _CREATED], created),
        _allow("TagWhatIsCreated", "ec2:CreateTags", [arn(kind) for kind in _CREATED], tagging),
        _allow("EndOwnInstances", "ec2:TerminateInstances", arn("instance"), owned),
    ]
    if scope.node_role:
        role = f"arn:aws:iam::{scope.account}:role/{scope.node_role}"
        to_ec2 = {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
        statements.append(_allow("GiveNodesTheirRole", "iam:PassRole", role, to_ec2))
    if scope.interruption_queue:
        queue = f"arn:aws:sqs:{scope.region}:{scope.account}:{scope.interruption_queue}"
        statements.append(_allow("ReadNotices", [f"sqs:{name}" for name in QUEUE], queue))
    return {"Version": "2012-10-17", "Statement": statements}


def _allow(
    name: str, actions: str | list[str], resources: str | list[str], condition: dict[str, Any] | None = None
) -> dict[str, Any]:
    found: dict[str, Any] = {"Sid": name, "Effect": "Allow", "Action": actions, "Resource": resources}
    return found if condition is None else {**found, "Condition": condition}
