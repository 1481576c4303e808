"""The chart has the objects of `shoal install` for the same values, and says what of the values has no effect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.chart import CHART, ROOT, outdated

from build.charts import by_address, helm, installed, notes, release, rendered
from build.yaml_texts import yaml_value
from shoal.cli.main import main
from shoal.cli.run_files import read_run_files
from shoal.install.values.known import CHOICES, OPTIONS, put
from shoal.install.values.option import Option

Obj = dict[str, Any]
_SHARED = ROOT.parent / "shared/manifests/helm-values"
_FILES = sorted(_SHARED.glob("*.yaml"))

VALUES = {
    "the defaults": "",
    "one replica": "{replicas: 1}",
    "no operator": "{operator: {enabled: false}, metrics: {serviceMonitor: {enabled: true}}}",
    "one part": "{controllers: [scheduler], config: {policy: Pack, preemption: {breakBudgets: true}}}",
    "a part that runs only if it is named": "{controllers: [scheduler, placeholder-pods]}",
    "images of a private registry": (
        "{image: {repository: r.example/shoal, tag: t1, pullPolicy: Always}, imagePullSecrets: [a, {name: b}], "
        "operator: {image: op, repository: q.example, version: 'sha256:aa', imagePullSecrets: [c]}}"
    ),
    "a digest": "{image: {digest: 'sha256:bb'}, operator: {imagePullPolicy: Never}}",
    "resources": "{resources: {limits: {memory: 1Gi}}, operator: {resources: {limits: {cpu: 1}}}}",
    "nodes of the pods": (
        "{tolerations: [{operator: Exists}], nodeSelector: {a: b}, operator: {nodeSelector: {c: d}, tolerations: []}}"
    ),
    "admission rules": "{config: {admission: {mode: off, rules: {UnequalGpus: enforce, SHL-354: warn}}}}",
    "no network objects": "{webhook: {enabled: false}, networkPolicies: {enabled: false}}",
    "monitors": "{metrics: {serviceMonitor: {enabled: true, interval: 5s}}, labels: {team: ml}}",
    "drivers by objects": "{driver: {nvidiaDriverCRD: {enabled: true, nodeSelector: {a: b}}}}",
    "virtual machines": "{sandboxWorkloads: {enabled: true}}",
    "a number as a version": "{driver: {version: 580.1, upgradePolicy: {maxUnavailable: 3}}}",
    "configurations of components": "{migManager: {config: {create: true, data: {config.yaml: 'version: v1'}}}}",
    "Kueue's configuration": (
        "managerConfig:\n  controllerManagerConfigYaml: |\n    apiVersion: config.kueue.x-k8s.io/v1beta2\n"
        "    kind: Configuration\n    manageJobsWithoutQueueName: true\n"
    ),
    "certificates of cert-manager": "{webhook: {certificates: cert-manager}}",
    "another issuer": "{webhook: {certificates: cert-manager, issuerRef: {name: ca, kind: ClusterIssuer}}}",
    "certificates without a webhook": "{webhook: {certificates: cert-manager, enabled: false}}",
    "the observer alone": "{observe: {enabled: true}}",
    "the observer with values": (
        "{observe: {enabled: true, interval: 5m}, networkPolicies: {enabled: false}, imagePullSecrets: [a], labels: "
        "{team: ml}, metrics: {serviceMonitor: {enabled: true}}, tolerations: [{operator: Exists}], image: {tag: t1}}"
    ),
    "pod autoscaling": (
        "{podAutoscaling: {enabled: true, resources: {limits: {memory: 1Gi}}}, imagePullSecrets: [a], "
        "labels: {team: ml}, metrics: {serviceMonitor: {enabled: true}}, tolerations: [{operator: Exists}], "
        "image: {tag: t1}}"
    ),
    "pod autoscaling without network policies": (
        "{podAutoscaling: {enabled: true}, networkPolicies: {enabled: false}, operator: {enabled: false}}"
    ),
    "a history": "{history: {enabled: true}, metrics: {serviceMonitor: {enabled: true}}}",
    "a history with values": (
        "{history: {enabled: true, size: 20Gi, storageClass: fast, accessMode: ReadWriteOncePod}, labels: {team: ml}, "
        "imagePullSecrets: [a], networkPolicies: {enabled: false}, operator: {enabled: false}, nodeSelector: {a: b}, "
        "metrics: {serviceMonitor: {enabled: true}}, image: {tag: t1}, resources: {limits: {memory: 1Gi}}}"
    ),
    "a history on a claim of the user, with prices and alerts": (
        "{history: {enabled: true, existingClaim: mine, pricesConfigMap: prices, retention: 'raw=1d,size=1G'}, "
        "alerts: {enabled: true, to: [events, 'alertmanager=http://alertmanager:9093']}}"
    ),
    "a history with alerts": "{history: {enabled: true}, alerts: {enabled: true}}",
    "a web dashboard": "{history: {enabled: true}, web: {enabled: true}, networkPolicies: {enabled: false}}",
    "a web dashboard with a certificate, behind a proxy": (
        "{history: {enabled: true, pricesConfigMap: prices}, alerts: {enabled: true}, "
        "web: {enabled: true, tlsSecret: web, trustedProxies: [10.0.0.0/8]}}"
    ),
    "a web dashboard beside the observer": "{history: {enabled: true}, web: {enabled: true}, observe: {enabled: true}}",
    "a history beside the observer": "{history: {enabled: true}, observe: {enabled: true}}",
    "names of guides": (
        "{nodeFeatureDiscovery: {enabled: false}, mig: {config: all-1g.10gb}, mps: {enabled: true, replicas: 8}, "
        "toolkit: {version: 1.17.4}}"
    ),
}


def test_the_generated_files_are_those_of_the_present_code() -> None:
    assert not outdated(), "run: make chart"


def test_helm_finds_no_fault_in_the_chart() -> None:
    report = helm().lint(str(ROOT / CHART), strict=True)
    assert report["errors"] == []
    assert [one["error"] for one in report["messages"]] == ["icon is recommended"]


@pytest.mark.parametrize("text", VALUES.values(), ids=VALUES.keys())
def test_the_chart_has_the_objects_of_shoal_install_for(text: str) -> None:
    assert by_address(rendered(yaml_value(text) or {})) == installed(text, release())


@pytest.mark.parametrize(("name", "namespace"), [("shoal-1795768000", "gpu-operator"), ("123", "true")])
def test_the_objects_have_the_names_of_the_release(name: str, namespace: str) -> None:
    assert by_address(rendered({}, name, namespace)) == installed("", release(name, namespace))
    scaling = {"podAutoscaling": {"enabled": True}}
    assert by_address(rendered(scaling, name, namespace)) == installed(
        "podAutoscaling: {enabled: true}", release(name, namespace)
    )


def changed(option: Option) -> Any:
    """Another value than the default."""
    if option.path in CHOICES:
        return next(word for word in CHOICES[option.path] if word != option.default)
    if isinstance(option.default, bool):
        return not option.default
    if isinstance(option.default, int):
        return option.default + 1
    if isinstance(option.default, str):
        return f"changed-{option.path.lower().replace('.', '-')}"
    return [{"name": "a"}] if isinstance(option.default, list) else {"a": "b"}


_CHECKED = (
    "operator.enabled",
    "controllers",
    "config",
    "managerConfig.controllerManagerConfigYaml",
    "crds.projects",
    "observe.enabled",
    "history.size",
    "alerts.to",
)
"""Their values have rules, or leave out what the others set."""


def test_every_option_has_the_effect_that_it_has_in_shoal_install() -> None:
    values: Obj = {}
    for option in OPTIONS:
        if option.path not in _CHECKED:
            put(values, option.path, changed(option))
    assert by_address(rendered(values)) == installed(yaml.safe_dump(values), release())


@pytest.mark.parametrize("text", VALUES.values(), ids=VALUES.keys())
def test_the_pods_programs_accept_their_configuration_and_arguments_for(text: str, tmp_path: Path) -> None:
    objects = rendered(yaml_value(text) or {})
    configs = {one["metadata"]["name"]: one.get("data") or {} for one in objects if one["kind"] == "ConfigMap"}
    pods = [one["spec"]["template"]["spec"] for one in objects if one["kind"] == "Deployment"]
    assert pods
    for pod in pods:
        if pod["serviceAccountName"] in ("shoal-observer", "shoal-history"):
            assert main([*pod["containers"][0]["args"], "--help"]) == 0
            continue
        config = configs[pod["volumes"][0]["configMap"]["name"]]
        (container,) = pod["containers"]
        arguments = container["args"]
        file = tmp_path / Path(arguments[arguments.index("--config") + 1]).name
        file.write_text(config[file.name])
        assert read_run_files([file]).own.webhook.service_namespace == "shoal-system"
        # Help is printed if the options before it are understood.
        assert main([*arguments, "--help"]) == 0


@pytest.mark.skipif(not _FILES, reason="the folder of values of other installations is not here")
@pytest.mark.parametrize("file", _FILES, ids=[file.stem for file in _FILES])
def test_values_of_other_installations_are_accepted(file: Path) -> None:
    text = file.read_text()
    assert by_address(rendered(yaml_value(text))) == installed(text, release())


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"driver": {"enable": False}}, "driver.enable is not an option and is ignored; did you mean driver.enabled?"),
        ({"driver": {"versoin": "1"}}, "driver.versoin is not an option and is ignored; did you mean driver.version?"),
        ({"drvier": {"enabled": False}}, "drvier is not an option and is ignored; did you mean driver?"),
        ({"mig": {"Strategy": "mixed"}}, "mig.Strategy is not an option and is ignored; did you mean mig.strategy?"),
        ({"kubecostToken": "a"}, "kubecostToken is not an option and is ignored"),
        ({"nodeFeatureDiscovery": {"enabled": True}}, "nodeFeatureDiscovery.enabled is not an option of the chart"),
        ({"mig": {"config": "all-1g.10gb"}}, "it is read as migManager.config.default=all-1g.10gb"),
        ({"mps": {"enabled": True, "replicas": 8}}, "they are read as a configuration of the device plugin"),
        ({"toolkit": {"version": "1.17.4"}}, "it is read as v1.17.4-ubuntu20.04"),
        ({"toolkit": {"version": "v1.17.4"}}, "lets containers escape to the host"),
        ({"devicePlugin": {"config": {"name": "a"}}}, "devicePlugin.config.default is empty"),
        ({"nfd": {"enabled": False}}, "nfd.enabled is false"),
    ],
    ids=lambda case: "" if isinstance(case, dict) else case,
)
def test_the_notes_warn(values: Obj, line: str) -> None:
    assert line in notes(values)


def test_the_notes_of_valid_values_have_no_warning() -> None:
    assert "Warnings" not in notes({"driver": {"enabled": False}, "operator": {"labels": {"any": "key"}}, "global": {}})


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"replicas": "two"}, "/replicas"),
        ({"replicas": -1}, "/replicas"),
        ({"mig": {"strategy": "mxied"}}, "/mig/strategy"),
        ({"driver": {"enabled": "maybe"}}, "/driver/enabled"),
        ({"driver": False}, "/driver"),
        ({"config": {"admission": {"rules": {"NoGpuTolerations": "warn"}}}}, "invalid propertyName 'NoGpuTolerations'"),
        ({"daemonsets": {"tolerations": {"key": "a"}}}, "/daemonsets/tolerations"),
        ({"mps": {"replicas": 1}}, "mps.replicas must be a whole number of at least 2"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_helm_refuses_a_value_of_the_wrong_type_at(values: Obj, where: str) -> None:
    with pytest.raises(helm().HelmError, match=where):
        rendered(values)


def test_each_option_is_documented_in_the_values() -> None:
    lines = (ROOT / CHART / "values.yaml").read_text().splitlines()
    for at, line in enumerate(lines):
        name, _, value = line.strip().partition(":")
        if value and not line.strip().startswith("#"):
            assert lines[at - 1].strip().startswith("#"), f"{name} has no description"
