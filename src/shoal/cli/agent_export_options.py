"""The options of `shoal agent export`, with the names and environment variables of the DCGM exporter."""

from __future__ import annotations

import dataclasses
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.completion_values import one_of
from shoal.cli.known_names import check_known
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.agent.exporter.settings import ExporterSettings
    from shoal.devices.dcgm_holders import HolderOptions
    from shoal.devices.dcgm_selection import Selection

_NO_CONFIG_MAP = "none"
_ID_TYPES = ("uid", "device-name")
_HOSTNAME_LABELS = ("Hostname", "hostname")
_UNSUPPORTED = {
    "DCGM_EXPORTER_DEVICES_STR": ("f", "all GPUs and MIG instances are shown"),
    "DCGM_EXPORTER_WEB_CONFIG_FILE": ("", "put a proxy before the exporter for TLS"),
    "DCGM_REMOTE_HOSTENGINE_INFO": ("localhost:5555", "the GPUs of this machine are read"),
}
"""Variables of the DCGM exporter that change nothing here, with the value that asks for nothing, and what is so."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MetricOptions:
    """What is shown."""

    collectors: Annotated[
        Path | None,
        typer.Option(
            "--collectors",
            "-f",
            metavar="FILE",
            envvar="DCGM_EXPORTER_COLLECTORS",
            help="The metrics to show, as FIELD, type, help in each line.",
        ),
    ] = None
    configmap_data: Annotated[
        str,
        typer.Option(
            "--configmap-data",
            "-m",
            metavar="NAMESPACE:NAME",
            envvar="DCGM_EXPORTER_CONFIGMAP_DATA",
            help="A ConfigMap with the metrics to show in its key metrics; none: the file.",
        ),
    ] = _NO_CONFIG_MAP
    collect_interval: Annotated[
        int,
        typer.Option(
            "--collect-interval",
            "-c",
            min=100,
            max=3_600_000,
            metavar="MS",
            envvar="DCGM_EXPORTER_INTERVAL",
            help="Milliseconds between two readings of a GPU.",
        ),
    ] = 1000
    use_old_namespace: Annotated[
        bool,
        typer.Option(
            "--use-old-namespace",
            envvar="DCGM_EXPORTER_USE_OLD_NAMESPACE",
            help="Write the labels uuid, pod_name, pod_namespace and container_name.",
        ),
    ] = False
    no_hostname: Annotated[
        bool,
        typer.Option("--no-hostname", "-n", envvar="DCGM_EXPORTER_NO_HOSTNAME", help="Leave out the node's name."),
    ] = False
    hostname_label: Annotated[
        str,
        typer.Option(
            "--hostname-label",
            metavar="NAME",
            help="The label of the node's name: Hostname, or hostname.",
            autocompletion=one_of(_HOSTNAME_LABELS),
        ),
    ] = _HOSTNAME_LABELS[0]
    replace_blanks_in_model_name: Annotated[
        bool,
        typer.Option(
            "--replace-blanks-in-model-name",
            envvar="DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME",
            help="Write dashes for blanks in the names of GPU models.",
        ),
    ] = False
    xid_count_window_size: Annotated[
        int,
        typer.Option(
            "--xid-count-window-size",
            "-x",
            min=1,
            metavar="MS",
            envvar="DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE",
            help="The time in which DCGM_EXP_XID_ERRORS_COUNT counts.",
        ),
    ] = 300_000
    clock_events_count_window_size: Annotated[
        int,
        typer.Option(
            "--clock-events-count-window-size",
            min=1,
            metavar="MS",
            envvar="DCGM_EXPORTER_CLOCK_EVENTS_COUNT_WINDOW_SIZE",
            help="The time in which DCGM_EXP_CLOCK_EVENTS_COUNT counts.",
        ),
    ] = 300_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class PodOptions:
    """Which pods and jobs are named."""

    kubernetes: Annotated[
        bool,
        typer.Option(
            "--kubernetes/--no-kubernetes",
            envvar="DCGM_EXPORTER_KUBERNETES",
            help="Whether the kubelet is asked which pods hold which devices.",
        ),
    ] = True
    pod_resources: Annotated[
        Path,
        typer.Option(
            "--pod-resources",
            "--pod-resources-kubelet-socket",
            metavar="SOCKET",
            envvar="DCGM_POD_RESOURCES_KUBELET_SOCKET",
            help="The kubelet's socket for pod resources.",
        ),
    ] = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
    kubernetes_gpu_id_type: Annotated[
        str,
        typer.Option(
            "--kubernetes-gpu-id-type",
            metavar="TYPE",
            envvar="DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE",
            help="How device ids name GPUs: uid, or device-name.",
            autocompletion=one_of(_ID_TYPES),
        ),
    ] = _ID_TYPES[0]
    kubernetes_virtual_gpus: Annotated[
        bool,
        typer.Option(
            "--kubernetes-virtual-gpus/--no-kubernetes-virtual-gpus",
            envvar="KUBERNETES_VIRTUAL_GPUS",
            help="Whether each pod of a shared GPU has rows of its own, or the last one only.",
        ),
    ] = True
    kubernetes_enable_pod_uid: Annotated[
        bool,
        typer.Option(
            "--kubernetes-enable-pod-uid",
            envvar="DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID",
            help="Write the label pod_uid.",
        ),
    ] = False
    kubernetes_enable_pod_labels: Annotated[
        bool,
        typer.Option(
            "--kubernetes-enable-pod-labels",
            envvar="DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS",
            help="Write the labels of pods, which are read from the API server.",
        ),
    ] = False
    kubernetes_pod_label_allowlist_regex: Annotated[
        str,
        typer.Option(
            "--kubernetes-pod-label-allowlist-regex",
            metavar="PATTERNS",
            envvar="DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX",
            help="Regular expressions for the names of the pod labels to write, separated by commas.",
        ),
    ] = ""
    nvidia_resource_names: Annotated[
        str,
        typer.Option(
            "--nvidia-resource-names",
            metavar="NAMES",
            envvar="NVIDIA_RESOURCE_NAMES",
            help="Further resources that are GPUs, separated by commas.",
        ),
    ] = ""
    hpc_job_mapping_dir: Annotated[
        Path | None,
        typer.Option(
            "--hpc-job-mapping-dir",
            metavar="DIR",
            envvar="DCGM_HPC_JOB_MAPPING_DIR",
            help="A folder with a file of job names for each GPU.",
        ),
    ] = None


def settings_of(metrics: MetricOptions, pods: PodOptions) -> ExporterSettings:
    """Raises `UserError` for values that do not exist and for a file that cannot be used."""
    from shoal.agent.exporter.settings import ExporterSettings
    from shoal.devices.dcgm_text import LabelNames

    check_known(metrics.hostname_label, _HOSTNAME_LABELS, "label", Where(path="--hostname-label"))
    node = os.environ.get("NODE_NAME") or socket.gethostname()
    return ExporterSettings(
        hostname="" if metrics.no_hostname else node,
        node_name=node,
        selection=_selection(metrics),
        holders=_holder_options(metrics, pods),
        labels=LabelNames("uuid" if metrics.use_old_namespace else "UUID", metrics.hostname_label),
        has_dashes=metrics.replace_blanks_in_model_name,
        interval_s=metrics.collect_interval / 1000,
        oldest_s=max(10.0, 3 * metrics.collect_interval / 1000),
        xid_window_ms=metrics.xid_count_window_size,
        clock_window_ms=metrics.clock_events_count_window_size,
    )


def ignored_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """A line for each variable of the DCGM exporter that changes nothing here."""
    for name, (usual, words) in _UNSUPPORTED.items():
        if environment.get(name, usual) not in ("", usual):
            yield f"{name} is not supported: {words}"


def _holder_options(metrics: MetricOptions, pods: PodOptions) -> HolderOptions:
    from shoal.devices.dcgm_holders import HolderOptions
    from shoal.devices.names import GPU, SHARED_SUFFIX

    check_known(pods.kubernetes_gpu_id_type, _ID_TYPES, "type of id", Where(path="--kubernetes-gpu-id-type"))
    return HolderOptions(
        id_type="uid" if pods.kubernetes_gpu_id_type == _ID_TYPES[0] else "device-name",
        has_virtual_gpus=pods.kubernetes_virtual_gpus,
        has_old_names=metrics.use_old_namespace,
        has_pod_labels=pods.kubernetes_enable_pod_labels,
        has_pod_uid=pods.kubernetes_enable_pod_uid,
        allow=_words(pods.kubernetes_pod_label_allowlist_regex),
        resource_names=(f"{GPU}{SHARED_SUFFIX}", *_words(pods.nvidia_resource_names)),
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _selection(metrics: MetricOptions) -> Selection:
    """A ConfigMap has precedence over a file."""
    from shoal.devices.dcgm_fields import DEFAULT, PROFILING
    from shoal.devices.dcgm_selection import selection_of_config_map

    if metrics.configmap_data != _NO_CONFIG_MAP:
        from shoal.wiring.gpu_exporter import selected_metrics

        return selection_of_config_map(selected_metrics(metrics.configmap_data), PROFILING)
    return DEFAULT if metrics.collectors is None else _selection_of_file(metrics.collectors)


def _selection_of_file(file: Path) -> Selection:
    from shoal.devices.dcgm_fields import PROFILING
    from shoal.devices.dcgm_selection import SelectionError, selection_of_file

    try:
        return selection_of_file(file.read_text(), PROFILING)
    except SelectionError as error:
        raise error.at(Where(file=str(file))) from error
    except UnicodeDecodeError as error:
        raise UserError("is not text", where=Where(file=str(file))) from error
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=Where(file=str(file))) from error
