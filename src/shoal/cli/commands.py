"""The commands of `shoal`, in the order and below the headings of its help.

A command is a line here. Its module is imported when the command runs or its own help is shown.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.cli.lazy_commands import CommandEntry, LazyGroup

_LOOK, _DECIDE = "Look at a cluster, or at manifests", "Decide and compare without a cluster"
_LOCAL, _RUN, _OTHER = "Cluster on this machine", "Shoal on a cluster", "Other"
_ENTRIES = (
    CommandEntry(
        "why",
        "shoal.cli.why:why",
        _LOOK,
        "Tell why a pod, gang, workload or job waits, or where it went: what it asks, the nodes, what would help.",
    ),
    CommandEntry(
        "doctor",
        "shoal.cli.doctor:doctor",
        _LOOK,
        "Find the cause of a problem: of a pod, job, queue, node or GPU, of the whole cluster, or in a log.",
    ),
    CommandEntry(
        "check",
        "shoal.cli.check:check",
        _LOOK,
        "Check whether a cluster is ready for work with GPUs: each item with evidence, and how to correct it.",
    ),
    CommandEntry(
        "get",
        "shoal.cli.get:get",
        _LOOK,
        "List pods, gangs, queues, workloads or nodes, with what they wait for.",
    ),
    CommandEntry(
        "lint",
        "shoal.cli.lint:lint",
        _LOOK,
        "Warn about objects that are wrong, or are valid and do something else than intended.",
    ),
    CommandEntry(
        "queue",
        "shoal.cli.queue:app",
        _LOOK,
        "Show quotas, their use, and the workloads that wait for them.",
    ),
    CommandEntry(
        "what-if",
        "shoal.cli.what_if_command:what_if",
        _LOOK,
        "Tell who would start, stop or wait longer with another quota, more nodes or another policy.",
    ),
    CommandEntry(
        "scale",
        "shoal.cli.scale:app",
        _LOOK,
        "Tell which nodes pods need, and which nodes none needs, at which price and why.",
    ),
    CommandEntry(
        "top",
        "shoal.cli.top:top",
        _LOOK,
        "Show what the GPUs are doing: per model, per holder, per node, and how much of what is free is fragments.",
    ),
    CommandEntry(
        "web",
        "shoal.cli.web:web",
        _LOOK,
        "Serve pages about the cluster to browsers: fleet, queues, workloads, costs and alerts, as they change.",
    ),
    CommandEntry(
        "explain",
        "shoal.cli.explain:explain",
        _LOOK,
        "Explain a term, a label, a resource, a metric or an error in a paragraph, without a cluster.",
    ),
    CommandEntry(
        "xid",
        "shoal.cli.explain:xid",
        _LOOK,
        "Tell what an Xid error of a GPU means, which programs it ends, and what to do.",
    ),
    CommandEntry(
        "tenant",
        "shoal.cli.tenant:app",
        _LOOK,
        "Create, list, check and delete teams that share a cluster, and grant them more quota for a time.",
    ),
    CommandEntry(
        "cost",
        "shoal.cli.cost:app",
        _LOOK,
        "Show what GPUs cost, by team, namespace, queue, job, model or label.",
    ),
    CommandEntry(
        "snapshot",
        "shoal.cli.snapshot:snapshot",
        _LOOK,
        "Write what decisions depend on to a file, without secrets; decide, why, queue, top and get read it with -f.",
    ),
    CommandEntry(
        "bundle",
        "shoal.cli.bundle:bundle",
        _LOOK,
        "Write a support bundle without secrets: objects, Events, logs of Shoal, versions, configuration, diagnosis.",
    ),
    CommandEntry(
        "decide",
        "shoal.cli.decide:decide",
        _DECIDE,
        "Decide for manifests: which pods are placed where, are preempted, or wait, and why.",
    ),
    CommandEntry(
        "pack",
        "shoal.cli.pack:pack",
        _DECIDE,
        "Pack a pod list onto a fleet under one or more policies and compare what they reach.",
    ),
    CommandEntry(
        "demo",
        "shoal.cli.demo:demo",
        _DECIDE,
        "Watch a GPU fleet being packed in the terminal; leaves a picture comparing policies.",
    ),
    CommandEntry(
        "size",
        "shoal.cli.size:size",
        _DECIDE,
        "Tell which GPUs hold a model, how fast they serve or train it, and what they cost.",
    ),
    CommandEntry("bench", "shoal.cli.bench:app", _DECIDE, "Measure the speed of decisions and the quality of packing."),
    CommandEntry(
        "up",
        "shoal.cli.up:up",
        _LOCAL,
        "Start a Kubernetes cluster with GPUs on this machine, with nothing to install.",
    ),
    CommandEntry(
        "down",
        "shoal.cli.down:down",
        _LOCAL,
        "End the cluster that `shoal up` started; the next `shoal up` finds everything again.",
    ),
    CommandEntry(
        "cluster",
        "shoal.cli.cluster:app",
        _LOCAL,
        "The embedded cluster that `shoal up` starts, and what breaks in it on demand.",
    ),
    CommandEntry(
        "node",
        "shoal.cli.node:app",
        _LOCAL,
        "The machines that join the cluster of shoal up: tokens, and removal.",
    ),
    CommandEntry(
        "join",
        "shoal.cli.join:join",
        _LOCAL,
        "Make this machine a node of a cluster that shoal up started on another machine.",
    ),
    CommandEntry(
        "install",
        "shoal.cli.install:install",
        _RUN,
        "Install Shoal, with the GPU stack of the nodes, in a cluster.",
    ),
    CommandEntry(
        "upgrade",
        "shoal.cli.upgrade:upgrade",
        _RUN,
        "Upgrade Shoal in a cluster to this version, or change its values.",
    ),
    CommandEntry(
        "status",
        "shoal.cli.status:status",
        _RUN,
        "Show an installation of Shoal: components, versions, nodes, and the first layer that fails.",
    ),
    CommandEntry(
        "uninstall",
        "shoal.cli.uninstall:uninstall",
        _RUN,
        "Remove Shoal from a cluster: everything that was installed, and nothing else.",
    ),
    CommandEntry(
        "run",
        "shoal.cli.run:run",
        _RUN,
        "Run Shoal on a cluster: place pods, admit jobs through queues, explain.",
    ),
    CommandEntry(
        "observe",
        "shoal.cli.observe:observe",
        _RUN,
        "Explain why the pods of a cluster wait, as metrics and JSON; change nothing.",
    ),
    CommandEntry(
        "agent",
        "shoal.cli.agent:app",
        _RUN,
        "The agent of a node with GPUs: devices, labels, MIG, metrics and health.",
    ),
    CommandEntry(
        "permissions",
        "shoal.cli.permissions:permissions",
        _RUN,
        "Print the account and the roles that shoal run needs: shoal permissions | kubectl apply -f -.",
    ),
    CommandEntry(
        "crds",
        "shoal.cli.crds:crds",
        _RUN,
        "Print definitions of kinds that Shoal works with: shoal crds | kubectl apply -f -.",
    ),
    CommandEntry(
        "alerts",
        "shoal.cli.alerts:alerts",
        _RUN,
        "Print alerts about GPUs and queues: shoal alerts | kubectl apply -f -.",
    ),
    CommandEntry(
        "policy",
        "shoal.cli.policy:app",
        _RUN,
        "Check pods with GPUs when they are created: print the policies, and what they would refuse.",
    ),
    CommandEntry(
        "dashboards",
        "shoal.cli.dashboards:dashboards",
        _RUN,
        "Print dashboards for Grafana: shoal dashboards -o objects | kubectl apply -f -.",
    ),
    CommandEntry(
        "completion",
        "shoal.cli.completion:completion",
        _OTHER,
        'Write a completion script to stdout, as in eval "$(shoal completion bash)".',
    ),
    CommandEntry(
        "version",
        "shoal.cli.version:version",
        _OTHER,
        "Print the versions of Shoal and of the cluster.",
    ),
)


class Commands(LazyGroup):
    entries = _ENTRIES
    general = (
        ("--version", "Print the version and exit."),
        ("--debug", "Show the traceback when something fails; accepted behind every command."),
    )
    instead: Mapping[str, str] = {
        "describe": "why",
        "advise": "lint",
        "list": "get",
        "ls": "get",
        "nodes": "get nodes",
        "pods": "get pods",
        "gangs": "get gangs",
        "queues": "get queues",
        "workloads": "get workloads",
        "start": "up",
        "stop": "down",
        "drain": "cluster drain",
    }
