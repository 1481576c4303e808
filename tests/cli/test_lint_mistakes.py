"""Mistakes in manifests that are right otherwise: each is one change of a text, and lint names it at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.api.plain_objects import read_plain_objects
from shoal.policy.catalogue import faults
from shoal.policy.findings import LintFinding
from shoal.policy.lint import lint_files
from shoal.policy.object_set import ObjectSet
from shoal.wiring.server_refusals import server_refusals

JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  namespace: team-a
  labels:
    kueue.x-k8s.io/queue-name: team-a
spec:
  parallelism: 4
  completions: 4
  completionMode: Indexed
  backoffLimit: 3
  template:
    metadata:
      labels: {app: train}
    spec:
      restartPolicy: Never
      subdomain: train
      tolerations:
      - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
      containers:
      - name: trainer
        image: registry.example/train:1.4.2
        imagePullPolicy: IfNotPresent
        command: [torchrun, --nnodes=4, --nproc_per_node=8, "--rdzv_endpoint=train-0.train:29500", train.py]
        env:
        - {name: NCCL_DEBUG, value: WARN}
        resources:
          requests: {cpu: "8", memory: 64Gi, nvidia.com/gpu: 8}
          limits: {memory: 64Gi, nvidia.com/gpu: 8}
        volumeMounts:
        - {name: shm, mountPath: /dev/shm}
      volumes:
      - name: shm
        emptyDir: {medium: Memory, sizeLimit: 16Gi}
---
apiVersion: v1
kind: Service
metadata: {name: train, namespace: team-a}
spec:
  clusterIP: None
  selector: {app: train}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team-a, namespace: team-a}
spec: {clusterQueue: gpus}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: gpus}
spec:
  cohortName: research
  namespaceSelector: {}
  queueingStrategy: BestEffortFIFO
  preemption: {reclaimWithinCohort: Any, withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - name: h100
      resources:
      - {name: cpu, nominalQuota: 512}
      - {name: memory, nominalQuota: 4Ti}
      - {name: nvidia.com/gpu, nominalQuota: 64, borrowingLimit: 16}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: h100}
spec:
  nodeLabels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}
"""

SERVER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm, namespace: serving, labels: {app: llm}}
spec:
  replicas: 2
  selector:
    matchLabels: {app: llm}
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: 0, maxUnavailable: 1}
  template:
    metadata:
      labels: {app: llm}
    spec:
      terminationGracePeriodSeconds: 120
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions:
              - {key: nvidia.com/gpu.product, operator: In, values: [NVIDIA-L40S]}
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: llm}}
      tolerations:
      - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
      initContainers:
      - name: fetch
        image: registry.example/fetch:2
        volumeMounts: [{name: models, mountPath: /models}]
      containers:
      - name: vllm
        image: registry.example/vllm:0.9.1
        args: [--model=/models/llama-8b, --tensor-parallel-size=2, --port=8000]
        ports:
        - {name: http, containerPort: 8000}
        readinessProbe:
          httpGet: {path: /health, port: http}
          periodSeconds: 10
        resources:
          requests: {cpu: "4", memory: 32Gi}
          limits: {memory: 32Gi, nvidia.com/gpu: 2}
        securityContext: {allowPrivilegeEscalation: false}
        volumeMounts:
        - {name: models, mountPath: /models, readOnly: true}
        - {name: shm, mountPath: /dev/shm}
      volumes:
      - name: models
        persistentVolumeClaim: {claimName: models}
      - name: shm
        emptyDir: {medium: Memory}
      - name: settings
        configMap: {name: llm-settings}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: llm-settings, namespace: serving}
data: {temperature: "0.7"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: models, namespace: serving}
spec:
  accessModes: [ReadOnlyMany]
  resources: {requests: {storage: 200Gi}}
---
apiVersion: v1
kind: Service
metadata: {name: llm, namespace: serving}
spec:
  selector: {app: llm}
  ports:
  - {name: http, port: 80, targetPort: http}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: llm, namespace: serving}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llm}
  minReplicas: 2
  maxReplicas: 10
  metrics:
  - type: Pods
    pods:
      metric: {name: requests_running}
      target: {type: AverageValue, averageValue: "10"}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: llm, namespace: serving}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: llm}}
"""

TRAINING = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: bert
  namespace: team-a
spec:
  nprocPerNode: "8"
  runPolicy:
    cleanPodPolicy: Running
    backoffLimit: 3
  pytorchReplicaSpecs:
    Master: &role
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          tolerations:
          - {key: nvidia.com/gpu, operator: Exists}
          containers:
          - name: pytorch
            image: registry.example/bert:3
            command: [torchrun, train.py]
            resources:
              requests: {cpu: "16", memory: 128Gi}
              limits: {memory: 128Gi, nvidia.com/gpu: 8}
            volumeMounts: [{name: shm, mountPath: /dev/shm}]
          volumes:
          - {name: shm, emptyDir: {medium: Memory}}
    Worker:
      <<: *role
      replicas: 3
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: pipeline, namespace: team-a}
spec:
  failurePolicy: {maxRestarts: 3}
  replicatedJobs:
  - name: workers
    replicas: 2
    template:
      spec:
        parallelism: 2
        completions: 2
        backoffLimit: 0
        template:
          spec:
            restartPolicy: Never
            containers:
            - name: worker
              image: registry.example/worker:1
              resources:
                requests: {memory: 8Gi}
                limits: {nvidia.com/gpu: 1}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: mpi, namespace: team-a}
spec:
  minAvailable: 3
  schedulerName: volcano
  queue: default
  plugins: {ssh: [], svc: []}
  policies:
  - {event: PodEvicted, action: RestartJob}
  tasks:
  - name: worker
    replicas: 3
    template:
      spec:
        restartPolicy: OnFailure
        containers:
        - name: worker
          image: registry.example/mpi:1
          resources:
            requests: {memory: 8Gi}
            limits: {nvidia.com/gpu: 1}
---
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: ray, namespace: team-a}
spec:
  rayVersion: 2.46.0
  headGroupSpec:
    rayStartParams: {dashboard-host: 0.0.0.0}
    template:
      spec:
        containers:
        - name: ray-head
          image: rayproject/ray:2.46.0
          resources: {requests: {cpu: "2"}}
  workerGroupSpecs:
  - groupName: gpu
    replicas: 1
    minReplicas: 0
    maxReplicas: 4
    rayStartParams: {}
    template:
      spec:
        containers:
        - name: ray-worker
          image: rayproject/ray:2.46.0-gpu
          resources:
            requests: {memory: 32Gi}
            limits: {nvidia.com/gpu: 1}
---
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: vllm, namespace: serving}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 2
    restartPolicy: RecreateGroupOnPodRestart
    workerTemplate:
      spec:
        containers:
        - name: vllm
          image: registry.example/vllm:1
          resources:
            requests: {memory: 8Gi}
            limits: {nvidia.com/gpu: 8}
"""

PLATFORM = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      expireAfter: 720h
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
      - {key: karpenter.k8s.aws/instance-gpu-count, operator: Gt, values: ["0"]}
      taints:
      - {key: nvidia.com/gpu, value: present, effect: NoSchedule}
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 5m
    budgets:
    - {nodes: 10%}
  limits: {nvidia.com/gpu: 64}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: consumer, namespace: serving}
spec:
  scaleTargetRef: {name: consumer}
  minReplicaCount: 0
  maxReplicaCount: 20
  cooldownPeriod: 300
  triggers:
  - type: prometheus
    metadata:
      serverAddress: http://prometheus.monitoring.svc:9090
      query: sum(vllm:num_requests_waiting)
      threshold: "5"
---
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy}
spec:
  operator: {defaultRuntime: containerd}
  driver: {enabled: true}
  toolkit: {enabled: true}
  mig: {strategy: mixed}
  devicePlugin:
    config: {name: time-slicing, default: any}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: time-slicing, namespace: gpu-operator}
data:
  any: |
    version: v1
    sharing:
      timeSlicing:
        resources:
        - name: nvidia.com/gpu
          replicas: 4
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: team-a}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu.nvidia.com
          allocationMode: ExactCount
          count: 1
---
apiVersion: v1
kind: Pod
metadata: {name: claimed, namespace: team-a}
spec:
  resourceClaims:
  - {name: gpu, resourceClaimTemplateName: gpu}
  containers:
  - name: main
    image: registry.example/main:1
    resources:
      claims: [{name: gpu}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: team-a}
spec:
  schedule: "30 2 * * *"
  timeZone: Europe/Berlin
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: main
            image: registry.example/nightly:7
            resources:
              requests: {memory: 8Gi}
              limits: {nvidia.com/gpu: 1}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpus, namespace: team-a}
spec:
  hard: {requests.nvidia.com/gpu: "16", pods: "100"}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: research}
value: 1000
preemptionPolicy: PreemptLowerPriority
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: gpus, namespace: monitoring}
spec:
  groups:
  - name: gpus
    rules:
    - alert: GpuIdle
      expr: avg_over_time(DCGM_FI_DEV_GPU_UTIL[30m]) < 5
      for: 30m
      labels: {severity: warning}
      annotations: {summary: "GPU {{ $labels.gpu }} is idle"}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: default, namespace: team-a}
spec:
  podSelector: {}
  policyTypes: [Ingress]
  ingress:
  - from: [{podSelector: {}}]
"""

MISTAKES = [
    # Names and types of fields.
    (JOB, "parallelism: 4", "paralelism: 4"),
    (JOB, "backoffLimit: 3", 'backoffLimit: "3"'),
    (JOB, "restartPolicy: Never", "restartPolicy: never"),
    (JOB, "restartPolicy: Never", "restartPolicy: Always"),
    (JOB, "restartPolicy: Never", "restartpolicy: Never"),
    (JOB, "      restartPolicy: Never\n", ""),
    (JOB, "  completions: 4\n", ""),
    (JOB, "completionMode: Indexed", "completionMode: indexed"),
    (JOB, "imagePullPolicy: IfNotPresent", "imagePullPolicy: IfNotPresents"),
    (JOB, "memory: 64Gi, nvidia.com/gpu: 8}\n          limits", "memory: 64GB, nvidia.com/gpu: 8}\n          limits"),
    (JOB, 'cpu: "8", memory: 64Gi', 'cpu: "8 cores", memory: 64Gi'),
    (JOB, 'cpu: "8", memory: 64Gi', 'cpu: "8", memory: 96Gi'),
    (JOB, "limits: {memory: 64Gi, nvidia.com/gpu: 8}", "limits: {memory: 64Gi, nvidia.com/gpu: 4}"),
    (JOB, "limits: {memory: 64Gi, nvidia.com/gpu: 8}", "limits: {memory: 64Gi}"),
    (
        JOB,
        "nvidia.com/gpu: 8}\n          limits: {memory: 64Gi, nvidia.com/gpu: 8}",
        "nvidia.com/gpu: 0.5}\n          limits: {memory: 64Gi, nvidia.com/gpu: 0.5}",
    ),
    (
        JOB,
        "nvidia.com/gpu: 8}\n          limits: {memory: 64Gi, nvidia.com/gpu: 8}",
        "nvidia.com/gpus: 8}\n          limits: {memory: 64Gi, nvidia.com/gpus: 8}",
    ),
    (
        JOB,
        "nvidia.com/gpu: 8}\n          limits: {memory: 64Gi, nvidia.com/gpu: 8}",
        "nvidia/gpu: 8}\n          limits: {memory: 64Gi, nvidia/gpu: 8}",
    ),
    (
        JOB,
        "nvidia.com/gpu: 8}\n          limits: {memory: 64Gi, nvidia.com/gpu: 8}",
        "nvidia.com/mig-1g.11gb: 1}\n          limits: {memory: 64Gi, nvidia.com/mig-1g.11gb: 1}",
    ),
    (
        JOB,
        "nvidia.com/gpu: 8}\n          limits: {memory: 64Gi, nvidia.com/gpu: 8}",
        "nvidia.com/gpu: 32}\n          limits: {memory: 64Gi, nvidia.com/gpu: 32}",
    ),
    (JOB, "medium: Memory", "medium: memory"),
    (JOB, "sizeLimit: 16Gi", "sizeLimit: 16gb"),
    (JOB, "- {name: shm, mountPath: /dev/shm}", "- {name: shmem, mountPath: /dev/shm}"),
    (JOB, "- {name: shm, mountPath: /dev/shm}", "- {name: shm, path: /dev/shm}"),
    (JOB, "operator: Exists, effect: NoSchedule", "operator: Exist, effect: NoSchedule"),
    (JOB, "operator: Exists, effect: NoSchedule", "operator: Exists, value: x, effect: NoSchedule"),
    (JOB, "operator: Exists, effect: NoSchedule", "operator: Exists, effect: NoSchedul"),
    (JOB, "- {name: NCCL_DEBUG, value: WARN}", "- {name: NCCL_DEBUG, value: 1}"),
    (JOB, "- {name: NCCL_DEBUG, value: WARN}", "- {name: NCCL DEBUG, valu: WARN}"),
    (JOB, "- {name: NCCL_DEBUG, value: WARN}", "- {name: A, value: x}\n        - {name: A, value: y}"),
    (JOB, "- {name: NCCL_DEBUG, value: WARN}", "  NCCL_DEBUG: WARN"),
    (JOB, "command: [torchrun", "comand: [torchrun"),
    (JOB, "[torchrun, --nnodes=4", "[torchrun, --nnodes=2"),
    (JOB, "--nproc_per_node=8", "--nproc_per_node=4"),
    (JOB, '"--rdzv_endpoint=train-0.train:29500", ', ""),
    (JOB, "--rdzv_endpoint=train-0.train:29500", "--rdzv_endpoint=train-0.trainer:29500"),
    (JOB, "command: [torchrun, ", "command: [python, -m, torch.distributed.launch, "),
    (JOB, "image: registry.example/train:1.4.2", "image: registry.example/Train:1.4.2"),
    (JOB, "image: registry.example/train:1.4.2", 'image: " registry.example/train:1.4.2"'),
    (JOB, "labels: {app: train}", "labels: {app: my train}"),
    (JOB, "selector: {app: train}", "selector: {app: trainer}"),
    (JOB, "name: train\n  namespace: team-a\n  labels", "name: Train_Job\n  namespace: team-a\n  labels"),
    (JOB, "kueue.x-k8s.io/queue-name: team-a", "kueue.x-k8s.io/queue: team-a"),
    (JOB, "kueue.x-k8s.io/queue-name: team-a", "kueue.x-k8s.io/queue-name: team-b"),
    (JOB, "kueue.x-k8s.io/queue-name: team-a", "kueue.x-k8s.io/queue_name: team-a"),
    (JOB, "  labels:\n    kueue", "  annotations:\n    kueue"),
    (JOB, "apiVersion: batch/v1", "apiVersion: batch/v1beta1"),
    (JOB, "apiVersion: batch/v1", "apiVersion: batch/v2"),
    (JOB, "kind: Job\n", "kind: Jobs\n"),
    (JOB, "subdomain: train", "subDomain: train"),
    (JOB, "subdomain: train", "subdomain: trainer"),
    (JOB, "spec: {clusterQueue: gpus}", "spec: {clusterQueue: gpu}"),
    (JOB, "spec: {clusterQueue: gpus}", "spec: {clusterqueue: gpus}"),
    (JOB, "  namespaceSelector: {}\n", ""),
    (JOB, "cohortName: research", "cohort: research"),
    (JOB, "cohortName: research", "cohortname: research"),
    (JOB, "  cohortName: research\n", ""),
    (JOB, "BestEffortFIFO", "BestEfforFIFO"),
    (JOB, "reclaimWithinCohort: Any", "reclaimWithinCohort: any"),
    (JOB, "reclaimWithinCohort: Any", "reclaimWithinCohorts: Any"),
    (JOB, "[cpu, memory, nvidia.com/gpu]", "[cpu, memory]"),
    (JOB, "      - {name: memory, nominalQuota: 4Ti}\n", ""),
    (JOB, "nominalQuota: 4Ti", "nominalQuota: 4TiB"),
    (JOB, "nominalQuota: 4Ti", "nominalquota: 4Ti"),
    (JOB, "nominalQuota: 64", "nominalQuota: -64"),
    (JOB, "    - name: h100\n", "    - name: h200\n"),
    (JOB, "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.product: H100-80GB-HBM3"),
    (JOB, "nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.product: true"),
    (JOB, "  nodeLabels: {", "  nodelabels: {"),
    (JOB, "kind: ResourceFlavor", "kind: ResourceFlavour"),
    (JOB, "kueue.x-k8s.io/v1beta2\nkind: LocalQueue", "kueue.x-k8s.io/v1\nkind: LocalQueue"),
    # A server and what belongs to it.
    (SERVER, "    matchLabels: {app: llm}\n  strategy", "    matchLabels: {app: vllm}\n  strategy"),
    (SERVER, "replicas: 2\n  selector", "replicas: two\n  selector"),
    (SERVER, "replicas: 2\n  selector", "replicas: -2\n  selector"),
    (SERVER, "type: RollingUpdate", "type: Rolling"),
    (SERVER, "type: RollingUpdate", "type: Recreate"),
    (SERVER, "maxSurge: 0, maxUnavailable: 1", "maxSurge: 0, maxUnavailable: 0"),
    (SERVER, "maxSurge: 0,", "maxsurge: 0,"),
    (SERVER, "operator: In, values: [NVIDIA-L40S]", "operator: in, values: [NVIDIA-L40S]"),
    (SERVER, "operator: In, values: [NVIDIA-L40S]", "operator: In, values: []"),
    (SERVER, "operator: In, values: [NVIDIA-L40S]", "operator: Exists, values: [NVIDIA-L40S]"),
    (SERVER, "values: [NVIDIA-L40S]", "values: [L40S]"),
    (SERVER, "values: [NVIDIA-L40S]", "values: NVIDIA-L40S"),
    (SERVER, "key: nvidia.com/gpu.product", "key: nvidia.com/gpu-product"),
    (SERVER, "nodeSelectorTerms:\n            - match", "nodeSelectorTerms:\n              match"),
    (SERVER, "requiredDuringSchedulingIgnoredDuringExecution", "requiredDuringSchedulingIgnoreDuringExecution"),
    (SERVER, "maxSkew: 1", "maxSkew: 0"),
    (SERVER, "ScheduleAnyway", "ScheduleAnyways"),
    (SERVER, "topologyKey: topology.kubernetes.io/zone", "topologyKey: zone of the node"),
    (SERVER, "labelSelector: {matchLabels: {app: llm}}", "labelSelector: {app: llm}"),
    (SERVER, "labelSelector: {matchLabels: {app: llm}}", "labelSelector: {matchLabels: {app: other}}"),
    (SERVER, "containerPort: 8000", "containerPort: 80000"),
    (SERVER, "containerPort: 8000", "port: 8000"),
    (SERVER, "port: http}\n          period", "port: web}\n          period"),
    (SERVER, "port: http}\n          period", "port: 9000}\n          period"),
    (SERVER, "periodSeconds: 10", "periodSeconds: 0s"),
    (SERVER, "periodSeconds: 10", "periodSeconds: -1"),
    (SERVER, "readinessProbe", "readynessProbe"),
    (
        SERVER,
        "httpGet: {path: /health, port: http}",
        "httpGet: {path: /health, port: http}\n          exec: {command: [x]}",
    ),
    (SERVER, "--tensor-parallel-size=2", "--tensor-parallel-size=4"),
    (SERVER, "securityContext: {allow", "securityContext: {fsGroup: 1, allow"),
    (SERVER, "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: false, privileged: true"),
    (SERVER, "claimName: models", "claimName: model"),
    (SERVER, "claimName: models", "claim: models"),
    (SERVER, "configMap: {name: llm-settings}", "configMap: {name: llm-setting}"),
    (SERVER, 'temperature: "0.7"', "temperature: 0.7"),
    (SERVER, "- {name: shm, mountPath: /dev/shm}", "- {name: shm, mountPath: /models}"),
    (SERVER, "      - name: shm\n        emptyDir", "      - name: models\n        emptyDir"),
    (SERVER, "- name: fetch", "- name: vllm"),
    (SERVER, "accessModes: [ReadOnlyMany]", "accessModes: [ReadOnly]"),
    (SERVER, "accessModes: [ReadOnlyMany]", "accessMode: ReadOnlyMany"),
    (SERVER, "storage: 200Gi", "storage: 200 Gi"),
    (SERVER, "selector: {app: llm}\n  ports", "selector: {app: llama}\n  ports"),
    (SERVER, "targetPort: http", "targetPort: web"),
    (SERVER, "port: 80, target", "port: 800000, target"),
    (SERVER, "kind: Deployment, name: llm", "kind: Deployment, name: vllm"),
    (SERVER, "apiVersion: apps/v1, kind: Deployment", "kind: Deployment"),
    (SERVER, "minReplicas: 2\n  maxReplicas: 10", "minReplicas: 20\n  maxReplicas: 10"),
    (SERVER, "  maxReplicas: 10\n", ""),
    (SERVER, "type: Pods", "type: Pod"),
    (SERVER, "type: AverageValue", "type: Average"),
    (SERVER, "averageValue:", "value:"),
    (SERVER, "autoscaling/v2", "autoscaling/v2beta2"),
    (SERVER, "  minAvailable: 1\n", "  minAvailable: 1\n  maxUnavailable: 1\n"),
    (SERVER, "selector: {matchLabels: {app: llm}}\n", "selector: {matchLabels: {app: web}}\n"),
    (SERVER, "policy/v1\n", "policy/v1beta1\n"),
    (SERVER, "namespace: serving, labels", "namespace: Serving, labels"),
    (SERVER, "      initContainers:\n", "      initcontainers:\n"),
    # Training jobs of other projects.
    (TRAINING, "pytorchReplicaSpecs:", "pyTorchReplicaSpecs:"),
    (TRAINING, "    Worker:\n", "    Workers:\n"),
    (TRAINING, "cleanPodPolicy: Running", "cleanPodPolicy: running"),
    (TRAINING, "restartPolicy: OnFailure\n      template", "restartPolicy: onFailure\n      template"),
    (TRAINING, "- name: pytorch\n", "- name: main\n"),
    (TRAINING, 'nprocPerNode: "8"', "nprocPerNode: 8"),
    (TRAINING, "  runPolicy:\n", "  runpolicy:\n"),
    (TRAINING, "backoffLimit: 3\n  pytorch", "backOffLimit: 3\n  pytorch"),
    (TRAINING, "      replicas: 3\n", "      replica: 3\n"),
    (TRAINING, "kubeflow.org/v1\n", "kubeflow.org/v1beta1\n"),
    (TRAINING, "{key: nvidia.com/gpu, operator: Exists}", "{key: nvidia.com/gpu, operator: Equals}"),
    (TRAINING, "maxRestarts: 3", "maxRestart: 3"),
    (TRAINING, "  replicatedJobs:", "  replicatedjobs:"),
    (TRAINING, "        parallelism: 2\n", "        paralellism: 2\n"),
    (
        TRAINING,
        "            restartPolicy: Never\n            containers:\n            - name: worker",
        "            restartPolicy: Always\n            containers:\n            - name: worker",
    ),
    (TRAINING, "- name: workers\n", "- names: workers\n"),
    (TRAINING, "jobset.x-k8s.io/v1alpha2", "jobset.x-k8s.io/v1"),
    (TRAINING, "minAvailable: 3", "minAvailable: 5"),
    (TRAINING, "minAvailable: 3", "minavailable: 3"),
    (TRAINING, "event: PodEvicted", "event: PodEvict"),
    (TRAINING, "action: RestartJob}", "action: RestartJobs}"),
    (TRAINING, "schedulerName: volcano", "schedulername: volcano"),
    (TRAINING, "  tasks:\n  - name: worker", "  task:\n  - name: worker"),
    (TRAINING, "plugins: {ssh: []", "plugins: {ssh: {}"),
    (TRAINING, "maxReplicas: 4", "maxReplica: 4"),
    (TRAINING, "minReplicas: 0\n    maxReplicas: 4", "minReplicas: 5\n    maxReplicas: 4"),
    (TRAINING, "  workerGroupSpecs:", "  workerGroupSpec:"),
    (TRAINING, "groupName: gpu", "name: gpu"),
    (TRAINING, "ray.io/v1\n", "ray.io/v1beta1\n"),
    (TRAINING, "    size: 2\n", "    sizes: 2\n"),
    (TRAINING, "RecreateGroupOnPodRestart", "RecreateGroup"),
    (TRAINING, "    workerTemplate:", "    workersTemplate:"),
    # What a platform team applies.
    (PLATFORM, "WhenEmptyOrUnderutilized", "WhenUnderutilized"),
    (PLATFORM, "operator: In, values: [spot", "operator: IN, values: [spot"),
    (PLATFORM, "values: [spot, on-demand]", "values: [spot, ondemand]"),
    (PLATFORM, 'operator: Gt, values: ["0"]', 'operator: Gt, values: ["none"]'),
    (PLATFORM, "karpenter.k8s.aws/instance-gpu-count", "nvidia.com/gpu.product"),
    (PLATFORM, "consolidateAfter: 5m", "consolidateAfter: 5 minutes"),
    (PLATFORM, "expireAfter: 720h", "expireAfter: 30d"),
    (PLATFORM, "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n", ""),
    (PLATFORM, "nodes: 10%", "nodes: 10 percent"),
    (PLATFORM, "effect: NoSchedule}\n  disruption", "effect: NoShedule}\n  disruption"),
    (PLATFORM, "  disruption:\n    consolidationPolicy", "  disruptions:\n    consolidationPolicy"),
    (PLATFORM, "karpenter.sh/v1\n", "karpenter.sh/v1alpha5\n"),
    (PLATFORM, "keda.sh/v1alpha1", "autoscaling.keda.sh/v1alpha1"),
    (PLATFORM, "minReplicaCount: 0", "minReplicas: 0"),
    (PLATFORM, "minReplicaCount: 0", "minReplicaCount: 30"),
    (PLATFORM, "type: prometheus", "type: promethues"),
    (PLATFORM, "      serverAddress: http://prometheus.monitoring.svc:9090\n", ""),
    (PLATFORM, 'threshold: "5"', "threshold: 5"),
    (PLATFORM, 'threshold: "5"', 'treshold: "5"'),
    (PLATFORM, "  triggers:", "  trigger:"),
    (PLATFORM, "mig: {strategy: mixed}", "mig: {strategy: mix}"),
    (PLATFORM, "devicePlugin:\n", "devicePlugins:\n"),
    (PLATFORM, "default: any", "default: all"),
    (PLATFORM, "nvidia.com/v1\n", "config.openshift.io/v1\n"),
    (PLATFORM, "timeSlicing:", "timeslicing:"),
    (PLATFORM, "          replicas: 4\n", "          replicas: 0\n"),
    (PLATFORM, "          deviceClassName: gpu.nvidia.com\n", ""),
    (PLATFORM, "allocationMode: ExactCount", "allocationMode: Exact"),
    (PLATFORM, "        exactly:\n", "        exact:\n"),
    (PLATFORM, "resourceClaimTemplateName: gpu}", "resourceClaimTemplateName: gpus}"),
    (PLATFORM, "claims: [{name: gpu}]", "claims: [{name: gpus}]"),
    (PLATFORM, "30 2 * * *", "30 2 * *"),
    (PLATFORM, "30 2 * * *", "30 25 * * *"),
    (PLATFORM, "Europe/Berlin", "Europe/Berln"),
    (PLATFORM, "concurrencyPolicy: Forbid", "concurrencyPolicy: Forbidden"),
    (PLATFORM, "  jobTemplate:", "  template:"),
    (PLATFORM, "requests.nvidia.com/gpu", "limits.nvidia.com/gpu"),
    (PLATFORM, "requests.nvidia.com/gpu", "nvidia.com/gpu"),
    (PLATFORM, "value: 1000", 'value: "1000"'),
    (PLATFORM, "value: 1000", "value: 2000000000"),
    (PLATFORM, "PreemptLowerPriority", "Preempt"),
    (PLATFORM, "DCGM_FI_DEV_GPU_UTIL[30m]", "dcgm_gpu_utilization[30m]"),
    (PLATFORM, "DCGM_FI_DEV_GPU_UTIL[30m]) < 5", "DCGM_FI_DEV_GPU_UTIL[30m] < 5"),
    (PLATFORM, "for: 30m", "for: 30min"),
    (PLATFORM, "avg_over_time(", "rate("),
    (PLATFORM, "      expr:", "      expression:"),
    (PLATFORM, "policyTypes: [Ingress]", "policyTypes: [ingress]"),
    (PLATFORM, "  podSelector: {}\n  policyTypes", "  podSelectors: {}\n  policyTypes"),
]


def found_in(folder: Path, text: str) -> list[LintFinding]:
    (folder / "a.yaml").write_text(text)
    read = read_plain_objects([str(folder / "a.yaml")])
    assert not read.errors, read.errors
    context = ObjectSet(plain.obj for plain in read.objects)
    return lint_files(read, context, frozenset(faults()), server_refusals).findings


@pytest.mark.parametrize("text", [JOB, SERVER, TRAINING, PLATFORM], ids=["job", "server", "training", "platform"])
def test_right_manifests_have_no_findings(tmp_path: Path, text: str) -> None:
    assert [(each.rule, each.object, each.field, each.message) for each in found_in(tmp_path, text)] == []


@pytest.mark.parametrize(("text", "right", "wrong"), MISTAKES, ids=[f"{wrong}".strip() for _, _, wrong in MISTAKES])
def test_a_mistake_is_found(tmp_path: Path, text: str, right: str, wrong: str) -> None:
    assert text.count(right) >= 1
    assert found_in(tmp_path, text.replace(right, wrong, 1))
