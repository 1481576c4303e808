"""The ConfigMaps with the configuration of `shoal run`, checked before anything is applied."""

from __future__ import annotations

from typing import Any

from shoal.api.decode import convert
from shoal.api.run_configuration import RUN_KIND, RUN_VERSION, RunConfiguration
from shoal.api.yaml_out import to_yaml
from shoal.api.yaml_text import read_yaml
from shoal.data.permissions import BY_DEFAULT, DRIVER_UPGRADES, HISTORY, POD_AUTOSCALING
from shoal.install.objects.certificates import CERTIFICATE, CERTIFICATE_FOLDER, has_issued_certificate
from shoal.install.objects.permissions import OPERATOR
from shoal.install.release import Release
from shoal.install.values.reading import ChartValues, merged
from shoal.units.errors import UserError, Where

Obj = dict[str, Any]
CONFIG, OPERATOR_CONFIG = "config.yaml", "operator.yaml"
_OWN_DEPLOYMENTS = {POD_AUTOSCALING: "podAutoscaling.enabled", HISTORY: "history.enabled"}
_KUEUE = "managerConfig.controllerManagerConfigYaml"


def scheduler_config(release: Release, values: ChartValues) -> Obj:
    """Raises UserError for fields that `shoal run` does not have."""
    for part, option in _OWN_DEPLOYMENTS.items():
        if part in values.get("controllers"):
            fix = f"set {option} to true, and leave it out here"
            raise UserError(f"{part} is a Deployment of its own", where=Where(path="controllers"), fix=fix)
    webhook = {
        "enabled": "auto" if values.get("webhook.enabled") else "never",
        "address": "0.0.0.0",  # noqa: S104 - of the pod; the Service leads there
        "serviceNamespace": release.namespace,
    }
    if has_issued_certificate(values):
        webhook |= {
            "certificateFolder": CERTIFICATE_FOLDER,
            "injectedFrom": f"{release.namespace}/{CERTIFICATE}",
        }
    own = {"apiVersion": RUN_VERSION, "kind": RUN_KIND, "webhook": webhook}
    if values.get("controllers") or values.get("operator.enabled"):
        own["controllers"] = list(scheduling_parts(values))
    own = merged(own, values.get("config"))
    where = Where(path="config")
    convert(own, RunConfiguration, where).check(where)
    text = to_yaml(own)
    kueue = values.get(_KUEUE)
    if kueue:
        text += "---\n" + _kueue(kueue)
    return config_map("shoal-config", release.namespace, {CONFIG: text})


def scheduling_parts(values: ChartValues) -> tuple[str, ...]:
    """The parts of `shoal run` beside the operator. Only Shoal's own operator has its drivers upgraded by Shoal."""
    upgrades = (DRIVER_UPGRADES,) if values.get("operator.enabled") else ()
    return tuple(values.get("controllers")) or (*BY_DEFAULT, *upgrades)


def operator_config(release: Release) -> Obj:
    own = {"apiVersion": RUN_VERSION, "kind": RUN_KIND, "leaderElection": {"resourceName": OPERATOR}}
    return config_map("shoal-operator-config", release.namespace, {OPERATOR_CONFIG: to_yaml(own)})


def _kueue(text: str) -> str:
    documents = [one for _, one in read_yaml(text, _KUEUE)]
    if len(documents) != 1 or not isinstance(documents[0], dict) or documents[0].get("kind") != "Configuration":
        raise UserError("is not one Configuration of Kueue", where=Where(path=_KUEUE))
    return text if text.endswith("\n") else f"{text}\n"


def config_map(name: str, namespace: str, data: dict[str, str]) -> Obj:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
