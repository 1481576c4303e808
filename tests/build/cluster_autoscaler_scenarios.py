"""Thirty cases of waiting pods and node groups, on which the real Cluster Autoscaler is compared with its rules."""

from __future__ import annotations

from build.literal_cluster_autoscaler import Group, Pods, Scenario

_SMALL = Group("small", 4_000, 16_384)
_LARGE = Group("large", 16_000, 65_536)
_HIGH_MEMORY = Group("memory", 8_000, 131_072)
_ONE_GPU = Group("gpu-1", 8_000, 65_536, gpus=1)
_EIGHT_GPUS = Group("gpu-8", 96_000, 1_048_576, gpus=8)
_WEB = Pods("web", 6, 1_500, 4_096)
_MODEL = Pods("model", 3, 4_000, 32_768, gpus=1)
_ZONED = tuple(
    Group(f"zone-{zone}", 8_000, 32_768, labels={"topology.kubernetes.io/zone": zone}) for zone in ("a", "b", "c")
)


def _sized(group: Group, size: int, most: int = 20, name: str = "") -> Group:
    return Group(
        name or group.name, group.cpu_milli, group.memory_mib, group.gpus, group.labels, group.taint, size, most
    )


SCENARIOS: tuple[Scenario, ...] = (
    Scenario("one group grows by what first fit needs", (_SMALL,), (_WEB,)),
    Scenario("least waste takes the group that is filled best", (_SMALL, _LARGE), (_WEB,)),
    Scenario("least waste counts memory as much as cpu", (_SMALL, _HIGH_MEMORY), (Pods("cache", 2, 3_000, 15_000),)),
    Scenario("least waste does not count GPUs", (_ONE_GPU, _EIGHT_GPUS), (Pods("train", 1, 7_000, 60_000, gpus=1),)),
    Scenario("pods with GPUs get nodes with GPUs", (_SMALL, _ONE_GPU), (_MODEL,)),
    Scenario("eight GPUs need the group with eight", (_ONE_GPU, _EIGHT_GPUS), (Pods("all", 2, 8_000, 65_536, gpus=8),)),
    Scenario(
        "pods of two kinds are packed by decreasing size",
        (_LARGE,),
        (Pods("big", 3, 9_000, 20_000), Pods("little", 7, 3_000, 4_096)),
    ),
    Scenario(
        "most pods takes the group that serves all kinds",
        (_SMALL, _LARGE),
        (Pods("big", 1, 9_000, 20_000), Pods("little", 4, 1_000, 2_048)),
        ("most-pods",),
    ),
    Scenario(
        "of groups that serve as many pods the second expander decides",
        (_SMALL, _LARGE),
        (_WEB,),
        ("most-pods", "least-waste"),
    ),
    Scenario("fewest nodes takes the largest group", (_SMALL, _LARGE), (_WEB,), ("least-nodes",)),
    Scenario(
        "of groups with as few nodes the least waste decides",
        (_SMALL, _LARGE, _HIGH_MEMORY),
        (Pods("one", 1, 3_000, 10_000),),
        ("least-nodes", "least-waste"),
    ),
    Scenario(
        "the highest priority wins against the waste",
        (_SMALL, _LARGE),
        (_WEB,),
        ("priority",),
        "10:\n  - .*small.*\n50:\n  - .*large.*\n",
    ),
    Scenario(
        "a pattern may match anywhere in the name",
        (_sized(_SMALL, 0, name="pool-spot-1"), _LARGE),
        (_WEB,),
        ("priority",),
        "10:\n  - large\n20:\n  - spot\n",
    ),
    Scenario(
        "without a match the next expander decides",
        (_SMALL, _LARGE),
        (_WEB,),
        ("priority", "least-nodes"),
        "10:\n  - nothing\n",
    ),
    Scenario(
        "unreadable priorities leave all groups",
        (_SMALL, _LARGE),
        (_WEB,),
        ("priority", "least-nodes"),
        "10: small\n",
    ),
    Scenario("absent priorities leave all groups", (_SMALL, _LARGE), (_WEB,), ("priority", "least-nodes")),
    Scenario(
        "a pattern that is no regular expression leaves all groups",
        (_SMALL, _LARGE),
        (_WEB,),
        ("priority", "least-nodes"),
        "10:\n  - small\n20:\n  - (\n",
    ),
    Scenario(
        "priorities below minus one are not used",
        (_SMALL, _LARGE),
        (_WEB,),
        ("priority", "least-nodes"),
        "-5:\n  - small\n",
    ),
    Scenario(
        "the priority minus one is used",
        (_SMALL, _LARGE),
        (_WEB,),
        ("priority", "least-nodes"),
        "-1:\n  - small\n",
    ),
    Scenario(
        "a full group of the highest priority leaves the rest to the next one",
        (_sized(_SMALL, 0, most=2), _LARGE),
        (_WEB,),
        ("priority",),
        "10:\n  - large\n50:\n  - small\n",
    ),
    Scenario(
        "the expander sees only the pods for which a group has room",
        (_sized(_SMALL, 0, most=1), _LARGE),
        (_WEB,),
        ("most-pods",),
    ),
    Scenario("a group at its maximum does not grow", (_sized(_SMALL, 2, most=2),), (Pods("web", 8, 1_500, 4_096),)),
    Scenario("free nodes take pods before groups grow", (_sized(_SMALL, 2),), (_WEB,)),
    Scenario("pods that fit on free nodes cause nothing", (_sized(_LARGE, 1), _SMALL), (_WEB,)),
    Scenario("a pod that is larger than each node causes nothing", (_SMALL,), (Pods("huge", 1, 8_000, 4_096),)),
    Scenario(
        "the kubelet's share is not free, but counts as waste",
        (Group("kept", 8_000, 16_384, reserved_milli=4_000), Group("plain", 6_000, 24_576)),
        (Pods("web", 1, 3_500, 12_000),),
    ),
    Scenario(
        "labels and tolerations limit the groups",
        (
            Group("team-a", 8_000, 32_768, labels={"team": "a"}),
            Group("team-b", 8_000, 32_768, labels={"team": "b"}),
            Group("kept", 4_000, 16_384, labels={"team": "b"}, taint="dedicated"),
        ),
        (
            Pods("b", 3, 3_000, 8_192, selector={"team": "b"}),
            Pods("a", 1, 3_000, 8_192, selector={"team": "a"}, tolerates="dedicated"),
        ),
    ),
    Scenario("pods that must be apart get a node each", (_LARGE,), (Pods("quorum", 5, 1_000, 1_024, apart=True),)),
    Scenario("the maximum of all nodes bounds the growth", (_sized(_SMALL, 1),), (_WEB,), most_nodes=3),
    Scenario(
        "similar groups are balanced",
        (_sized(_ZONED[0], 2), _ZONED[1], _ZONED[2]),
        (Pods("server", 12, 3_500, 8_192),),
        balances=True,
    ),
)
