"""`kubectl create ...`, `run`, `expose`: kubectl makes objects, mostly as protobuf, and the server fills them in."""

from __future__ import annotations

import base64
import json

import pytest

from build.kubectl_runs import Kubectl

COMMANDS = {
    "deployment web --image=nginx --replicas=3 --port=80": "deployment.apps/web",
    "job once --image=busybox -- date": "job.batch/once",
    "cronjob often --image=busybox --schedule=*/5_*_*_*_* -- date": "cronjob.batch/often",
    "configmap settings --from-literal=a=b": "configmap/settings",
    "secret generic words --from-literal=a=b": "secret/words",
    "secret docker-registry pull --docker-username=u --docker-password=p": "secret/pull",
    "serviceaccount bot": "serviceaccount/bot",
    "role reader --verb=get,list --resource=pods,deployments.apps": "role.rbac.authorization.k8s.io/reader",
    "rolebinding readers --role=reader --user=ann --group=staff": "rolebinding.rbac.authorization.k8s.io/readers",
    "quota small --hard=pods=10,requests.nvidia.com/gpu=4": "resourcequota/small",
    "poddisruptionbudget keep --selector=app=web --min-available=1": "poddisruptionbudget.policy/keep",
    "service clusterip inner --tcp=80:8080": "service/inner",
    "service nodeport outer --tcp=80:8080": "service/outer",
    "service loadbalancer far --tcp=80:8080": "service/far",
    "service externalname away --external-name=example.com": "service/away",
    "ingress door --rule=example.com/*=inner:80": "ingress.networking.k8s.io/door",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_kind_that_create_knows_is_created_once(kubectl: Kubectl, command: str) -> None:
    arguments = [part.replace("_", " ") for part in command.split()]
    assert kubectl("create", *arguments) == f"{COMMANDS[command]} created\n"
    assert kubectl.names(COMMANDS[command]) == [COMMANDS[command]]
    refusal = kubectl.refused("create", *arguments)
    assert "already exists" in refusal
    assert "(AlreadyExists)" in refusal or refusal.startswith("error: failed to create")


def test_kinds_without_a_namespace_are_created_too(kubectl: Kubectl) -> None:
    name = f"of-{kubectl.namespace}"
    made = {
        ("namespace",): "namespace",
        ("clusterrole", "--verb=get", "--resource=nodes"): "clusterrole.rbac.authorization.k8s.io",
        ("priorityclass", "--value=1000"): "priorityclass.scheduling.k8s.io",
        ("clusterrolebinding", "--clusterrole=view", "--user=ann"): "clusterrolebinding.rbac.authorization.k8s.io",
    }
    for (kind, *options), what in made.items():
        assert kubectl("create", kind, name, *options) == f"{what}/{name} created\n"
        # A namespace goes only when somebody has emptied it.
        assert kubectl("delete", kind, name, "--wait=false") == f'{what} "{name}" deleted\n'


def test_a_created_deployment_is_filled_in_as_kubernetes_does_it(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")
    spec = kubectl.get("deployment", "web")["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (1, 10, 600)
    assert spec["strategy"] == {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}, "type": "RollingUpdate"}
    (container,) = spec["template"]["spec"]["containers"]
    assert (container["imagePullPolicy"], container["resources"]) == ("Always", {})


def test_a_job_is_made_from_a_cron_job_and_belongs_to_it(kubectl: Kubectl) -> None:
    kubectl("create", "cronjob", "often", "--image=busybox", "--schedule=@hourly", "--", "date")
    assert kubectl("create", "job", "now", "--from=cronjob/often") == "job.batch/now created\n"
    metadata = kubectl.get("job", "now")["metadata"]
    assert metadata["ownerReferences"][0]["kind"] == "CronJob"
    assert metadata["annotations"] == {"cronjob.kubernetes.io/instantiate": "manual"}


def test_a_bad_schedule_is_refused(kubectl: Kubectl) -> None:
    refusal = kubectl.refused("create", "cronjob", "odd", "--image=busybox", "--schedule=every day")
    assert 'CronJob.batch "odd" is invalid: spec.schedule: Invalid value: "every day"' in refusal


def test_a_created_token_is_a_token_of_the_account_and_says_until_when(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "bot")
    token = kubectl("create", "token", "bot", "--duration=20m", "--audience=somebody")
    part = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    assert claims["sub"] == f"system:serviceaccount:{kubectl.namespace}:bot"
    assert (claims["aud"], claims["exp"] - claims["iat"]) == (["somebody"], 1200)
    assert kubectl.refused("create", "token", "nobody").endswith('serviceaccounts "nobody" not found')
    too_short = kubectl.refused("create", "token", "bot", "--duration=5m")
    assert "may not specify a duration less than 10 minutes" in too_short


def test_run_makes_a_pod_with_all_that_was_asked_for(kubectl: Kubectl) -> None:
    asked = ("--image=cuda:12", "--labels=app=x,tier=y", "--env=A=1", "--port=80", "--restart=Never")
    assert kubectl("run", "probe", *asked, "--", "nvidia-smi", "-L") == "pod/probe created\n"
    pod = kubectl.get("pod", "probe")
    (container,) = pod["spec"]["containers"]
    assert pod["metadata"]["labels"] == {"app": "x", "tier": "y"}
    assert (container["args"], container["env"]) == (["nvidia-smi", "-L"], [{"name": "A", "value": "1"}])
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert (pod["spec"]["restartPolicy"], pod["spec"]["serviceAccountName"]) == ("Never", "default")
    assert (pod["status"]["phase"], pod["status"]["qosClass"]) == ("Pending", "BestEffort")


def test_run_takes_overrides_and_a_dry_run_stores_nothing(kubectl: Kubectl) -> None:
    overrides = '{"apiVersion": "v1", "spec": {"nodeSelector": {"gpu": "h100"}}}'
    told = kubectl("run", "probe", "--image=x", f"--overrides={overrides}", "--dry-run=server", "-o", "json")
    assert json.loads(told)["spec"]["nodeSelector"] == {"gpu": "h100"}
    assert kubectl.names("pods") == []


def test_expose_makes_a_service_that_selects_the_pods(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx", "--port=80")
    assert kubectl("expose", "deployment", "web", "--target-port=8080") == "service/web exposed\n"
    kubectl("run", "probe", "--image=nginx", "--labels=app=probe", "--port=90", "--expose")
    web, probe = kubectl.get("service", "web")["spec"], kubectl.get("service", "probe")["spec"]
    assert web["selector"] == {"app": "web"}
    assert web["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 8080}]
    assert (probe["selector"], probe["ports"][0]["port"]) == ({"app": "probe"}, 90)


def test_services_get_an_address_and_node_ports_a_number(kubectl: Kubectl) -> None:
    kubectl("create", "service", "nodeport", "outer", "--tcp=80:8080")
    spec = kubectl.get("service", "outer")["spec"]
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert spec["clusterIP"].startswith("10.96.") or spec["clusterIP"].startswith("10.")
    assert 30000 <= spec["ports"][0]["nodePort"] <= 32767
    assert (spec["sessionAffinity"], spec["internalTrafficPolicy"], spec["ipFamilies"]) == ("None", "Cluster", ["IPv4"])


def test_a_name_that_is_none_is_refused_in_kubernetes_words(kubectl: Kubectl) -> None:
    refusal = kubectl.refused("create", "configmap", "Big_Name")
    assert "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters" in refusal


def test_nothing_is_created_in_a_namespace_that_is_not_there(kubectl: Kubectl) -> None:
    refusal = kubectl.within("nowhere").refused("create", "configmap", "settings")
    assert refusal.endswith('namespaces "nowhere" not found')


def test_generated_names_are_all_different(kubectl: Kubectl) -> None:
    one = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "part-"}}
    told = kubectl("create", "-f-", given=[one] * 5).splitlines()
    assert len(set(told)) == 5
    assert all(line.startswith("configmap/part-") and line.endswith(" created") for line in told)
