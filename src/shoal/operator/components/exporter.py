"""Builds the objects of the metrics: DCGM, its exporter with a ServiceMonitor, and the exporter of node states."""

from __future__ import annotations

from shoal.operator.components.build import (
    Building,
    access,
    daemon_set,
    image_of,
    named,
    own_agent,
    pull_policy_of,
    pull_secrets_of,
    runs_own_image,
    validations_mount,
    waits_for,
)
from shoal.operator.components.component import DCGM, EXPORTER, STATUS_EXPORTER, Component
from shoal.operator.components.images import nvidia_image
from shoal.operator.components.pods import NODE_NAME, ContainerParts, Env, FromField, Mount, PodParts, with_env
from shoal.operator.policy.operands import Obj
from shoal.operator.policy.spec import ExporterFields

PORT = 9400
_DCGM_PORT, _STATUS_PORT = 5555, 8000
_PORT_NAME = "gpu-metrics"
_USUAL_METRICS = "/etc/dcgm-exporter/dcp-metrics-included.csv"
_OWN_METRICS = "/etc/dcgm-exporter/dcgm-metrics.csv"
_SCRAPED = {"prometheus.io/scrape": "true"}


def exporter_objects(build: Building) -> list[Obj]:
    exporter = build.spec.dcgm_exporter
    if not exporter.enabled:
        return []
    pod = PodParts(
        init=waits_for(build, "toolkit"),
        containers=(_exporter(build),),
        runtime_class=build.spec.operator.runtime_class,
        is_on_host_network=exporter.host_network,
        sees_host_processes=exporter.host_pid,
        pull_secrets=pull_secrets_of(build, exporter),
    )
    rules = [("", "pods", "get,list,watch")] if exporter.enable_pod_labels or exporter.enable_pod_uid else []
    found = [*access(build, EXPORTER, everywhere=rules), daemon_set(build, EXPORTER, pod)]
    service = _service(build, EXPORTER, _PORT_NAME, PORT)
    service["metadata"]["annotations"] = dict(_SCRAPED)
    service["spec"]["type"] = exporter.service.type
    service["spec"]["internalTrafficPolicy"] = exporter.service.internal_traffic_policy
    found.append(service)
    if exporter.service_monitor.enabled and build.facts.has_service_monitors:
        found.append(_service_monitor(build, exporter))
    return found


def dcgm_objects(build: Building) -> list[Obj]:
    """The process that reads the GPUs for several exporters. Without it the exporter reads them itself."""
    dcgm = build.spec.dcgm
    if not dcgm.enabled:
        return []
    container = ContainerParts(
        name="nvidia-dcgm-ctr",
        image=nvidia_image("dcgm", dcgm).text(),
        pull_policy=dcgm.image_pull_policy or "IfNotPresent",
        args=dcgm.args,
        env=with_env({"DCGM_EXPORTER_KUBERNETES": "true"}, dcgm.env),
        resources=dcgm.resources,
        more={"ports": [{"name": "dcgm", "containerPort": _DCGM_PORT}]},
    )
    pod = PodParts(
        init=waits_for(build, "toolkit"),
        containers=(container,),
        runtime_class=build.spec.operator.runtime_class,
        is_on_host_network=dcgm.host_network,
        pull_secrets=dcgm.image_pull_secrets,
    )
    service = _service(build, DCGM, "dcgm", _DCGM_PORT)
    # An exporter reads the GPUs of its own node.
    service["spec"]["internalTrafficPolicy"] = "Local"
    return [*access(build, DCGM), daemon_set(build, DCGM, pod), service]


def status_exporter_objects(build: Building) -> list[Obj]:
    exporter = build.spec.node_status_exporter
    if not exporter.enabled:
        return []
    container = ContainerParts(
        name="nvidia-node-status-exporter",
        image=nvidia_image("nodeStatusExporter", exporter).text(),
        pull_policy=exporter.image_pull_policy or "IfNotPresent",
        command=("nvidia-validator",),
        args=exporter.args,
        env=with_env({**NODE_NAME, "COMPONENT": "metrics", "METRICS_PORT": str(_STATUS_PORT)}, exporter.env),
        mounts=(validations_mount(),),
        resources=exporter.resources,
        more={"ports": [{"name": "node-status", "containerPort": _STATUS_PORT}]},
    )
    pod = PodParts(
        containers=(container,),
        is_on_host_network=exporter.host_network,
        pull_secrets=exporter.image_pull_secrets,
    )
    service = _service(build, STATUS_EXPORTER, "node-status", _STATUS_PORT)
    rules = (("", "nodes", "get,list,watch"),)
    return [*access(build, STATUS_EXPORTER, everywhere=rules), daemon_set(build, STATUS_EXPORTER, pod), service]


def _exporter(build: Building) -> ContainerParts:
    exporter = build.spec.dcgm_exporter
    own = runs_own_image(exporter)
    env = with_env(
        {**_exporter_env(build, exporter), **({} if own or exporter.config.name else _usual_metrics())}, exporter.env
    )
    mounts = _exporter_mounts(build, exporter)
    ports: Obj = {"ports": [{"name": "metrics", "containerPort": PORT}]}
    if own:
        return own_agent(build, "nvidia-dcgm-exporter", exporter, ("export",), env, mounts).with_more(ports)
    return ContainerParts(
        name="nvidia-dcgm-exporter",
        image=image_of(build, EXPORTER, exporter),
        pull_policy=pull_policy_of(build, exporter),
        args=exporter.args,
        env=env,
        mounts=mounts,
        resources=exporter.resources,
        more=ports,
    )


def _usual_metrics() -> dict[str, str]:
    return {"DCGM_EXPORTER_COLLECTORS": _USUAL_METRICS}


def _exporter_env(build: Building, exporter: ExporterFields) -> Env:
    env: dict[str, str | FromField] = {
        **NODE_NAME,
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "all",
        "DCGM_EXPORTER_LISTEN": f":{PORT}",
        "DCGM_EXPORTER_KUBERNETES": "true",
    }
    if exporter.config.name:
        env["DCGM_EXPORTER_COLLECTORS"] = _OWN_METRICS
    if build.spec.dcgm.enabled and not runs_own_image(exporter):
        env["DCGM_REMOTE_HOSTENGINE_INFO"] = f"{DCGM.name}:{_DCGM_PORT}"
    if exporter.enable_pod_labels:
        env["DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS"] = "true"
    if exporter.enable_pod_uid:
        env["DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID"] = "true"
    if exporter.pod_label_allowlist_regex:
        env["DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX"] = ",".join(exporter.pod_label_allowlist_regex)
    if exporter.hpc_job_mapping.enabled:
        env["DCGM_HPC_JOB_MAPPING_DIR"] = exporter.hpc_job_mapping.directory
    return env


def _exporter_mounts(build: Building, exporter: ExporterFields) -> tuple[Mount, ...]:
    sockets = f"{build.spec.host_paths.kubelet_root_dir}/pod-resources"
    found = [Mount("pod-gpu-resources", "/var/lib/kubelet/pod-resources", sockets, is_read_only=True)]
    if exporter.config.name:
        found.append(
            Mount(
                "metrics-config",
                _OWN_METRICS,
                config_map=exporter.config.name,
                is_read_only=True,
                sub_path=_OWN_METRICS.rpartition("/")[2],
            )
        )
    if exporter.hpc_job_mapping.enabled:
        folder = exporter.hpc_job_mapping.directory
        found.append(Mount("hpc-job-mapping", folder, folder, "DirectoryOrCreate", is_read_only=True))
    return tuple(found)


def _service(build: Building, component: Component, port_name: str, port: int) -> Obj:
    service = named("v1", "Service", component.name, build.namespace, component.name)
    service["metadata"]["labels"]["app"] = component.name
    service["spec"] = {
        "selector": {"app": component.name},
        "ports": [{"name": port_name, "port": port, "targetPort": port, "protocol": "TCP"}],
    }
    return service


def _service_monitor(build: Building, exporter: ExporterFields) -> Obj:
    fields = exporter.service_monitor
    found = named("monitoring.coreos.com/v1", "ServiceMonitor", EXPORTER.name, build.namespace, EXPORTER.name)
    # The operator knows its objects by their own labels, which the policy cannot change.
    found["metadata"]["labels"] = {"app": EXPORTER.name, **fields.additional_labels, **found["metadata"]["labels"]}
    endpoint: Obj = {
        "port": _PORT_NAME,
        "path": "/metrics",
        "interval": fields.interval,
        "honorLabels": fields.honor_labels,
    }
    if fields.scrape_timeout:
        endpoint["scrapeTimeout"] = fields.scrape_timeout
    if fields.relabelings:
        endpoint["relabelings"] = [dict(one) for one in fields.relabelings]
    found["spec"] = {
        "jobLabel": "app",
        "selector": {"matchLabels": {"app": EXPORTER.name}},
        "namespaceSelector": {"matchNames": [build.namespace]},
        "endpoints": [endpoint],
    }
    return found
