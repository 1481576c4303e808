"""Lists the fields that a snapshot of a cluster may contain, by name. Whatever is not named here stays behind.

Guarantees: what people hide in objects stays there: values of environment variables, commands, arguments, annotations
of strangers, parameters of drivers and plugins, volumes that are not claims. What decisions read is all here, which a
property test holds against the deciding code.

Rejected: a list of what must not leave. It would be incomplete as soon as a password is put into a new field.
"""

from __future__ import annotations

OBJECT = frozenset(
    {
        *("apiVersion", "kind", "metadata", "spec", "status"),
        *("value", "globalDefault", "preemptionPolicy", "description"),
        *("handler", "overhead", "scheduling"),
        *("provisioner", "volumeBindingMode", "allowedTopologies", "reclaimPolicy"),
        *("topologyPolicies", "attributes", "zones"),
    }
)
"""Fields of an object itself: of all kinds together, since each name means one thing."""

META = frozenset(
    {
        *("name", "namespace", "generateName", "uid", "generation", "labels", "ownerReferences", "finalizers"),
        *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
    }
)

ANNOTATION_DOMAINS = (
    "shoal.dev",
    "kueue.x-k8s.io",
    "scheduling.k8s.io",
    "scheduling.x-k8s.io",
    "scheduling.sigs.k8s.io",
    "jobset.sigs.k8s.io",
    "leaderworkerset.sigs.k8s.io",
    "volcano.sh",
    "kai.scheduler",
    "run.ai",
    "nvidia.com",
    "hami.io",
    "batch.kubernetes.io",
    "resource.kubernetes.io",
    "topology.kubernetes.io",
    "volume.kubernetes.io",
    "volume.beta.kubernetes.io",
    "pv.kubernetes.io",
    "storageclass.kubernetes.io",
)
"""Those that schedulers, queues and devices speak in, with everything below them."""

ANNOTATIONS = frozenset({"pod-group-name", "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"})
"""Older ones without a domain."""

POD_SPEC = frozenset(
    {
        *("nodeName", "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints"),
        *("priority", "priorityClassName", "preemptionPolicy", "schedulerName", "schedulingGates"),
        *("overhead", "hostNetwork", "runtimeClassName", "resourceClaims", "resources", "restartPolicy"),
        *("serviceAccountName", "terminationGracePeriodSeconds", "activeDeadlineSeconds"),
        *("schedulingGroup", "workloadRef", "os", "hostname", "subdomain"),
    }
)
"""Besides containers and volumes, of which only a part may."""

CONTAINER = frozenset({"name", "image", "resources", "ports", "restartPolicy", "resizePolicy"})

VOLUME = frozenset({"name", "persistentVolumeClaim", "ephemeral"})

POD_STATUS = frozenset(
    {
        *("phase", "reason", "message", "conditions", "nominatedNodeName", "startTime", "qosClass"),
        *("resourceClaimStatuses", "extendedResourceClaimStatus", "observedGeneration"),
    }
)

NODE_STATUS = frozenset({"capacity", "allocatable", "conditions", "declaredFeatures"})

VOLUME_SPEC = frozenset(
    {
        *("capacity", "accessModes", "claimRef", "nodeAffinity", "storageClassName", "volumeMode"),
        *("persistentVolumeReclaimPolicy", "volumeAttributesClassName"),
    }
)
"""Of a PersistentVolume: where its bytes lie is its own affair, from where they are reached is not."""

CONDITION = frozenset({"type", "status", "reason", "message", "lastTransitionTime", "observedGeneration"})

WHOLE = frozenset(
    {
        *("labels", "nodeSelector", "tolerations", "affinity", "resources", "resourcesPerNode", "requests", "limits"),
        *("capability", "deserved", "resource"),
    }
)
"""Of kinds that we have no types for: fields that are kept as they are, wherever they stand."""

TEXTS = frozenset(
    {
        *("apiVersion", "kind", "apiGroup", "name", "namespace", "groupName", "mode", "type", "uid"),
        *("parent", "parentQueue", "dequeueStrategy"),
        *("queue", "queueName", "schedulerName", "priorityClassName", "completionMode", "operator"),
        *("cores", "memory", "coreRequest", "coreLimit", "memoryOverhead", "memoryOverheadFactor", "quantity"),
        *("numProcPerNode", "nodesPerSlice", "policy", "startupPolicyOrder", "image"),
        *("phase", "state", "jobStatus", "jobDeploymentStatus", "jobId", "reason", "message", "status"),
        *("creationTimestamp", "startTime", "endTime", "completionTime", "lastTransitionTime"),
    }
)
"""Of the same kinds: fields whose text is kept. Numbers and yes or no say little by themselves and are kept anywhere,
save below the names of `SILENT`."""

SILENT = frozenset(
    {
        *("data", "stringData", "binaryData", "env", "envFrom", "envVars", "args", "arguments", "command"),
        *("rayStartParams", "runtimeEnvYAML", "entrypoint", "sparkConf", "hadoopConf", "plugins", "parameters"),
        *("volumeMounts", "volumes", "secrets", "configMaps", "imagePullSecrets", "managedFields"),
    }
)
"""Of the same kinds: nothing below these is kept."""
