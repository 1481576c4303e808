"""Lists the fields that a snapshot of a cluster may contain, by name. All other fields are left out.

Guarantees: confidential content is never included: values of environment variables, commands, arguments, unknown
annotations, parameters of drivers and plugins, volumes that are not claims. All fields that decisions read are
included; a property test compares the list with the deciding code.

Rejected: a list of excluded fields. It would be incomplete as soon as a new field contains a password.
"""

from __future__ import annotations

OBJECT = frozenset(
    {
        *("apiVersion", "kind", "metadata", "spec", "status"),
        *("value", "globalDefault", "preemptionPolicy", "description"),
        *("handler", "overhead", "scheduling"),
        *("provisioner", "volumeBindingMode", "allowedTopologies", "reclaimPolicy"),
        *("topologyPolicies", "attributes", "zones", "template"),
    }
)
"""Top-level fields of objects, in one set for all kinds, because each name has one meaning."""

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
    "karpenter.sh",
    "cluster-autoscaler.kubernetes.io",
    "autoscaling.x-k8s.io",
    "controller.kubernetes.io",
)
"""Domains of annotations of schedulers, queues and devices, including their subdomains."""

ANNOTATIONS = frozenset({"pod-group-name", "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"})
"""Older annotations without a domain."""

POD_SPEC = frozenset(
    {
        *("nodeName", "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints"),
        *("priority", "priorityClassName", "preemptionPolicy", "schedulerName", "schedulingGates"),
        *("overhead", "hostNetwork", "runtimeClassName", "resourceClaims", "resources", "restartPolicy"),
        *("serviceAccountName", "terminationGracePeriodSeconds", "activeDeadlineSeconds"),
        *("schedulingGroup", "workloadRef", "os", "hostname", "subdomain"),
    }
)
"""Fields of pod specs besides containers and volumes, of which only parts are included."""

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
"""Fields of a PersistentVolume: the node affinity is included, the location of the data is not."""

CONDITION = frozenset({"type", "status", "reason", "message", "lastTransitionTime", "observedGeneration"})

WHOLE = frozenset(
    {
        *("labels", "nodeSelector", "tolerations", "affinity", "resources", "resourcesPerNode", "requests", "limits"),
        *("capability", "deserved", "resource"),
    }
)
"""Fields of kinds without a type that are included unchanged, at any depth."""

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
"""Fields of the same kinds whose text is included. Numbers and booleans disclose little and are included everywhere,
except below the names of `SILENT`.
"""

SILENT = frozenset(
    {
        *("data", "stringData", "binaryData", "env", "envFrom", "envVars", "args", "arguments", "command"),
        *("rayStartParams", "runtimeEnvYAML", "entrypoint", "sparkConf", "hadoopConf", "plugins", "parameters"),
        *("volumeMounts", "volumes", "secrets", "configMaps", "imagePullSecrets", "managedFields"),
    }
)
"""Fields of the same kinds that are left out with everything below them."""
