"""The plugins env, svc and ssh: a pod's index, names by which pods find each other, and keys to log in with."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from shoal.controllers.volcano.job import VolcanoJob
from shoal.controllers.volcano.names import JOB_NAME, JOB_NAMESPACE, NETWORK_POLICIES
from shoal.controllers.volcano.plugins.dressing import Place, argument, containers, host, hosts, mount, say
from shoal.store.live.item import Obj
from shoal.store.live.kind import CONFIG_MAPS, SECRETS, SERVICES, Kind

_HOSTS_FOLDER, _KEYS_FOLDER = "/etc/volcano", "/root/.ssh"
_BITS = 2048


def dress_env(place: Place, pod: Obj, given: Sequence[str]) -> None:
    del given
    for container in containers(pod):
        for name in ("VK_TASK_INDEX", "VC_TASK_INDEX"):
            say(container, name, str(place.index))


def dress_svc(place: Place, pod: Obj, given: Sequence[str]) -> None:
    del given
    job, spec = place.job, pod["spec"]
    spec["hostname"] = spec.get("hostname") or pod["metadata"]["name"]
    spec["subdomain"] = spec.get("subdomain") or job.name
    name = _hosts_name(job)
    mount(pod, {"name": name, "configMap": {"name": name}}, _HOSTS_FOLDER)
    for container in containers(pod):
        for task in job.tasks():
            for variable in _variables(task.name):
                say(container, variable, {"configMapKeyRef": {"name": name, "key": variable}})


def objects_svc(job: VolcanoJob, given: Sequence[str]) -> list[tuple[Kind, Obj]]:
    selector = {JOB_NAME: job.name, JOB_NAMESPACE: job.metadata.namespace}
    port = {"name": "placeholder-volcano", "port": 1, "protocol": "TCP", "targetPort": 1}
    service = {
        "clusterIP": "None",
        "selector": selector,
        "ports": [port],
        "publishNotReadyAddresses": argument(given, "publish-not-ready-addresses", "false") == "true",
    }
    made: list[tuple[Kind, Obj]] = [
        (SERVICES, {"metadata": {"name": job.name}, "spec": service}),
        (CONFIG_MAPS, {"metadata": {"name": _hosts_name(job)}, "data": _hosts_data(job)}),
    ]
    if argument(given, "disable-network-policy", "false") != "true":
        mine = {"podSelector": {"matchLabels": selector}}
        spec = {**mine, "ingress": [{"from": [mine]}], "policyTypes": ["Ingress"]}
        made.append((NETWORK_POLICIES, {"metadata": {"name": job.name}, "spec": spec}))
    return made


def dress_ssh(place: Place, pod: Obj, given: Sequence[str]) -> None:
    name = _keys_name(place.job)
    folder = argument(given, "ssh-key-file-path", _KEYS_FOLDER)
    mount(pod, {"name": name, "secret": {"secretName": name, "defaultMode": 0o600}}, folder)


def objects_ssh(job: VolcanoJob, given: Sequence[str]) -> list[tuple[Kind, Obj]]:
    """With new keys: whoever finds it there already leaves it."""
    del given
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
