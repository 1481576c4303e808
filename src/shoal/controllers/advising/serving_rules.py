"""Services and what they serve: names that lead nowhere, doors that stand open, figures that say little."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.controllers.advising.advice import Advice
from shoal.controllers.advising.around import Around, dig, maps, named
from shoal.controllers.advising.templates import shapes
from shoal.store.live.item import Obj
from shoal.store.live.kind import DEPLOYMENTS, SERVICES, STATEFUL_SETS

_OPEN = ("comfyui", "open-webui", "ollama")
"""Images that ask nobody who he is, unless they are told to."""
_SECRET = ("SECRET", "SECRET_KEY", "PASSWORD", "TOKEN", "API_KEY", "ACCESS_KEY")


def governing_services(obj: Obj, around: Around) -> Iterator[Advice]:
    """A StatefulSet's pods have names of their own below its headless Service."""
    namespace, name = str(dig(obj, "metadata", "namespace") or ""), dig(obj, "spec", "serviceName")
    if not isinstance(name, str) or not name:
        return
    what = ""
    if around.lacks(SERVICES, namespace, name):
        what = f"there is no Service {name} in {namespace}"
    elif (service := around.find(SERVICES, namespace, name)) and dig(service, "spec", "clusterIP") != "None":
        what = f"Service {name} is not headless"
    if what:
        fix = "make a Service of that name with clusterIP: None"
        yield Advice("NoHeadlessService", "spec.serviceName", f"{what}: its pods have no names of their own", fix)


def plain_secrets(obj: Obj, _: Around) -> Iterator[Advice]:
    for shape in shapes(obj):
        for path, container in shape.containers():
            for at, one in enumerate(maps(container.get("env"))):
                name = str(one.get("name") or "")
                if one.get("value") and name.endswith(_SECRET):
                    what = f"{name} stands in the manifest, where everybody who may read it reads it"
                    fix = "keep it in a Secret, and write valueFrom.secretKeyRef"
                    yield Advice("PlainSecret", f"{path}.env[{at}].value", what, fix)


def open_doors(obj: Obj, around: Around) -> Iterator[Advice]:
    """A Service of type LoadBalancer in front of something that asks nobody who he is."""
    spec = named(obj.get("spec"))
    wanted = named(spec.get("selector"))
    if spec.get("type") != "LoadBalancer" or not wanted:
        return
    namespace = str(dig(obj, "metadata", "namespace") or "")
    for kind in (DEPLOYMENTS, STATEFUL_SETS):
        for server in around.all(kind, namespace):
            for shape in shapes(server):
                image = next((name for name in map(_image, shape.containers()) if name in _OPEN), "")
                if image and wanted.items() <= shape.labels.items():
                    what = f"opens {image} to everybody who reaches the load balancer, without a login"
                    fix = "write ClusterIP, and put an ingress with authentication in front"
                    yield Advice("OpenDoor", "spec.type", what, fix)
                    return


def _image(placed: tuple[str, Obj]) -> str:
    """`open-webui` of `ghcr.io/open-webui/open-webui:main`."""
    return str(placed[1].get("image") or "").rpartition("/")[2].partition(":")[0].partition("@")[0]


def cpu_of_gpu_pods(obj: Obj, around: Around) -> Iterator[Advice]:
    """Scaling on what does not move."""
    target = named(dig(obj, "spec", "scaleTargetRef"))
    kind = {"Deployment": DEPLOYMENTS, "StatefulSet": STATEFUL_SETS}.get(str(target.get("kind")))
    if kind is None:
        return
    scaled = around.find(kind, str(dig(obj, "metadata", "namespace") or ""), str(target.get("name")))
    if scaled is None or not any(shape.asks_gpus() for shape in shapes(scaled)):
        return
    for at, metric in enumerate(maps(dig(obj, "spec", "metrics"))):
        if metric.get("type") == "Resource" and dig(metric, "resource", "name") == "cpu":
            yield Advice(
                "CpuOfGpuPods",
                f"spec.metrics[{at}].resource.name",
                "the load of a GPU hardly shows in the CPU: replicas would come too late or never",
                "scale on GPU utilisation or on waiting requests",
            )
