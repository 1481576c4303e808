"""Configures pods for the plugins env, svc and ssh: the pod's index, host names, and SSH keys."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from shoal.client.item import Obj
from shoal.client.kind import CONFIG_MAPS, SECRETS, SERVICES, Kind
from shoal.controllers.volcano.job import VolcanoJob
from shoal.controllers.volcano.names import JOB_NAME, JOB_NAMESPACE, NETWORK_POLICIES
from shoal.controllers.volcano.plugins.pod_edits import PluginTarget, argument, containers, host, hosts, mount, set_env

_HOSTS_FOLDER, _KEYS_FOLDER = "/etc/volcano", "/root/.ssh"
_BITS = 2048


def configure_env(target: PluginTarget, pod: Obj, arguments: Sequence[str]) -> None:
    del arguments
    for container in containers(pod):
        for name in ("VK_TASK_INDEX", "VC_TASK_INDEX"):
            set_env(container, name, str(target.index))


def configure_svc(target: PluginTarget, pod: Obj, arguments: Sequence[str]) -> None:
    del arguments
    job, spec = target.job, pod["spec"]
    spec["hostname"] = spec.get("hostname") or pod["metadata"]["name"]
    spec["subdomain"] = spec.get("subdomain") or job.name
    name = _hosts_name(job)
    mount(pod, {"name": name, "configMap": {"name": name}}, _HOSTS_FOLDER)
    for container in containers(pod):
        for task in job.tasks():
            for variable in _variables(task.name):
                set_env(container, variable, {"configMapKeyRef": {"name": name, "key": variable}})


def objects_svc(job: VolcanoJob, arguments: Sequence[str]) -> list[tuple[Kind, Obj]]:
    selector = {JOB_NAME: job.name, JOB_NAMESPACE: job.metadata.namespace}
    port = {"name": "placeholder-volcano", "port": 1, "protocol": "TCP", "targetPort": 1}
    service = {
        "clusterIP": "None",
        "selector": selector,
        "ports": [port],
        "publishNotReadyAddresses": argument(arguments, "publish-not-ready-addresses", "false") == "true",
    }
    objects: list[tuple[Kind, Obj]] = [
        (SERVICES, {"metadata": {"name": job.name}, "spec": service}),
        (CONFIG_MAPS, {"metadata": {"name": _hosts_name(job)}, "data": _hosts_data(job)}),
    ]
    if argument(arguments, "disable-network-policy", "false") != "true":
        job_pods = {"podSelector": {"matchLabels": selector}}
        spec = {**job_pods, "ingress": [{"from": [job_pods]}], "policyTypes": ["Ingress"]}
        objects.append((NETWORK_POLICIES, {"metadata": {"name": job.name}, "spec": spec}))
    return objects


def configure_ssh(target: PluginTarget, pod: Obj, arguments: Sequence[str]) -> None:
    name = _keys_name(target.job)
    folder = argument(arguments, "ssh-key-file-path", _KEYS_FOLDER)
    mount(pod, {"name": name, "secret": {"secretName": name, "defaultMode": 0o600}}, folder)


def objects_ssh(job: VolcanoJob, arguments: Sequence[str]) -> list[tuple[Kind, Obj]]:
    """The Secret with new keys; an existing Secret is kept."""
    del arguments
    key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n"
    files = {"id_rsa": private, "id_rsa.pub": public, "authorized_keys": public, "config": _ssh_config(job).encode()}
    data = {name: b64encode(content).decode() for name, content in files.items()}
    return [(SECRETS, {"metadata": {"name": _keys_name(job)}, "type": "Opaque", "data": data})]


def _ssh_config(job: VolcanoJob) -> str:
    words = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
    for task in job.tasks():
        for index in range(task.replicas):
            words += f"Host {job.pod_name(task, index)}\n  HostName {host(job, task, index)}\n"
    return words


def _hosts_name(job: VolcanoJob) -> str:
    return f"{job.name}-svc"


def _keys_name(job: VolcanoJob) -> str:
    return f"{job.name}-ssh"


def _variables(task: str) -> tuple[str, str]:
    name = task.upper().replace("-", "_")
    return f"VC_{name}_HOSTS", f"VC_{name}_NUM"


def _hosts_data(job: VolcanoJob) -> dict[str, str]:
    data: dict[str, str] = {}
    for task in job.tasks():
        names, (all_of_them, number) = hosts(job, task), _variables(task.name)
        data |= {f"{task.name}.host": "\n".join(names), all_of_them: ",".join(names), number: str(task.replicas)}
    return data
