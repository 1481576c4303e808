"""Four nodes of eight GPUs, six pods, one round: the engine by hand, without a cluster or a clock.

    python examples/decide.py

Prints what was decided, on which devices, and why the last pod waits.
"""

from __future__ import annotations

from collections import Counter

from shoal.api.taints import Taint
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.device_demand import GpuShare, WholeGpus
from shoal.engine.events import NodeFacts, NodeSeen, PodArrived
from shoal.engine.evidence import evidence
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.plan import Place
from shoal.engine.pod_mix import PodMix, class_of
from shoal.engine.profile import profile_named
from shoal.views.why import why

GIB = 2**30
RESERVED = (Taint(key="dedicated", value="training", effect="NoSchedule"),)


def main() -> None:
    cluster = Cluster()
    intake = Intake(cluster)
    for n in range(4):  # the last one is reserved
        node = NodeFacts(
            name=f"gpu-{n}",
            allocatable={"cpu": 64_000, "memory": 512 * GIB, "pods": 110},
            taints=RESERVED if n == 3 else (),
            gpus=8,
            gpu_model="NVIDIA-H100-80GB-HBM3",
        )
        intake.apply(NodeSeen(node))

    train = Ask(requests=(("cpu", 32_000), ("memory", 128 * GIB)), devices=WholeGpus(4))
    serve = Ask(requests=(("cpu", 4_000), ("memory", 16 * GIB)), devices=GpuShare(300))
    large = Ask(requests=(("cpu", 48_000), ("memory", 256 * GIB)), devices=WholeGpus(8))
    usual = PodMix.from_counts(Counter({class_of(serve): 70, class_of(train): 20, class_of(large): 10}))
    placement = Placement(cluster, profile_named("Shoal", cluster, usual))
    for number, ask in enumerate((train, serve, serve, train, large, large)):
        intake.apply(PodArrived(f"team-a/pod-{number}", ask))

    plan = cycle(cluster, placement, now_s=0.0, seed=1)
    for intention in plan.intentions:
        if isinstance(intention, Place):
            devices = intention.grant.devices if intention.grant is not None else ()
            print(f"{intention.pod}: {intention.node}, GPU {', '.join(map(str, devices))}")
        else:
            ask = cluster.pending[intention.pod].charge.ask
            print(f"{intention.pod}: {intention.code}. {why(evidence(cluster, ask))}")


if __name__ == "__main__":
    main()
