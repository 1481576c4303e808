"""The examples at the end of each command's help, by the words behind `shoal`."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "": (
        "shoal up --demo                  # a cluster at work in this terminal",
        'eval "$(shoal up --detach)"      # a cluster for kubectl and shoal in this shell',
        "shoal why job/train              # why a job waits",
    ),
    "decide": (
        "shoal decide -f manifests/",
        "shoal decide -f job.yaml --nodes 8xp5.48xlarge",
        "kubectl get nodes,pods -A -o json | shoal decide -f -",
    ),
    "why": (
        "shoal why job/train",
        "shoal why -n team-a pod/train-0 -o json",
        "shoal why team-a/train -f snapshot.json",
    ),
    "get": (
        "shoal get pods -A",
        "shoal get gangs -n team-a --watch",
        "shoal get nodes p5-0 -o wide",
        "shoal get pods -o custom-columns=POD:.pod,GPUS:.gpus --sort-by .gpus",
    ),
    "advise": ("shoal advise -f manifests/", "shoal advise --live -A -o wide"),
    "queue": (
        "shoal queue",
        "shoal queue team-a --workloads",
        "shoal queue -f manifests/ -o json",
    ),
    "queue diff": ("shoal queue diff -f now.yaml -f proposed.yaml",),
    "top": ("shoal top", "shoal top --watch", "shoal top -f snapshot.json -o wide"),
    "snapshot": ("shoal snapshot --file monday.json", "shoal snapshot --file - -o yaml"),
    "pack": (
        "shoal pack -f snapshot.json",
        "shoal pack --policy Shoal,FGD,BestFit --plot out.svg",
        "shoal pack --nodes nodes.csv --pods pods.csv",
    ),
    "demo": ("shoal demo", "shoal demo --nodes 500 --out packing.svg"),
    "up": (
        'eval "$(shoal up --detach)"',
        "shoal up --nodes 8xp5.48xlarge,2xdgx-a100-80",
        "shoal up --demo",
    ),
    "down": ("shoal down", "shoal down --state /tmp/other"),
    "run": (
        "shoal run --context staging --controllers scheduler,queues",
        "shoal run --config shoal.yaml --log-format json",
    ),
    "permissions": ("shoal permissions | kubectl apply -f -", "shoal permissions --controllers scheduler -o json"),
    "crds": ("shoal crds | kubectl apply -f -", "shoal crds --project kueue,volcano"),
    "completion": ('eval "$(shoal completion bash)"', "shoal completion fish | source"),
    "version": ("shoal version", "shoal version --client -o json"),
    "agent": ("shoal agent check", "shoal agent check --fake dgx-h100"),
    "agent check": ("shoal agent check", "shoal agent check --fake dgx-h100 -o json"),
    "agent validate": ("shoal agent validate", "shoal agent validate --layers driver,cuda -o json"),
    "agent mig": ("shoal agent mig plan -c all-balanced", "shoal agent mig export"),
    "agent mig plan": (
        "shoal agent mig plan -c all-balanced",
        "shoal agent mig plan -f layouts.yaml -c custom --fake dgx-h100",
    ),
    "agent mig apply": ("shoal agent mig apply -c all-1g.10gb", "shoal agent mig apply -f layouts.yaml -c custom"),
    "agent mig assert": ("shoal agent mig assert -c all-disabled", "shoal agent mig assert -f layouts.yaml -c custom"),
    "agent mig run": ("shoal agent mig run", "shoal agent mig run --fake dgx-h100 --node gpu-0"),
    "agent mig export": ("shoal agent mig export > layouts.yaml", "shoal agent mig export --fake dgx-h100 -o json"),
    "agent cdi": ("shoal agent cdi --out /var/run/cdi/nvidia.json", "shoal agent cdi --fake dgx-h100"),
    "agent labels": ("shoal agent labels", "shoal agent labels --write node --mig-strategy single"),
    "cluster": ("shoal cluster status", "shoal cluster gpu-fail p5-48xlarge-0 3"),
    "cluster status": ("shoal cluster status", "shoal cluster status -o json"),
    "cluster reset": ("shoal cluster reset --yes",),
    "cluster nodes": ("shoal cluster nodes --nodes 4xp5.48xlarge --kubeconfig ~/.kube/kind",),
    "cluster controllers": ("shoal cluster controllers --kubeconfig ~/.kube/test",),
    "cluster fail": ("shoal cluster fail p5-48xlarge-0",),
    "cluster partition": ("shoal cluster partition p5-48xlarge-0",),
    "cluster reboot": ("shoal cluster reboot p5-48xlarge-0",),
    "cluster spot-interrupt": ("shoal cluster spot-interrupt p5-48xlarge-0",),
    "cluster gpu-fail": ("shoal cluster gpu-fail p5-48xlarge-0 3 --xid 48",),
    "cluster heal": ("shoal cluster heal p5-48xlarge-0", "shoal cluster heal p5-48xlarge-0 --gpu 3"),
    "cluster drain": ("shoal cluster drain p5-48xlarge-0 --timeout 60",),
    "cluster slow-api": ("shoal cluster slow-api --delay-ms 300 --seconds 30",),
    "cluster expire-watches": ("shoal cluster expire-watches",),
    "bench": ("shoal bench engine", "shoal bench queues -o json"),
    "bench engine": ("shoal bench engine -o json",),
    "bench queues": ("shoal bench queues --out-of-step",),
}
