"""A case of the exporter as it is in the files, without its expectation."""

from __future__ import annotations

import msgspec

from shoal.devices.dcgm_text import Entity


class CounterLine(msgspec.Struct):
    field: str
    type: str
    help: str


class SampleLine(msgspec.Struct, rename="camel"):
    value: str
    gpu: str = ""
    uuid_label: str = "UUID"
    gpu_uuid: str = ""
    pci_bus_id: str = ""
    device: str = ""
    model_name: str = ""
    hostname: str = ""
    mig_profile: str = ""
    gpu_instance_id: str = ""
    nvswitch: str = ""
    nvlink: str = ""
    labels: dict[str, str] = {}
    attributes: dict[str, str] = {}

    @property
    def entity(self) -> Entity:
        return Entity(
            gpu=self.gpu,
            uuid=self.gpu_uuid,
            pci=self.pci_bus_id,
            device=self.device,
            model=self.model_name,
            profile=self.mig_profile,
            instance=self.gpu_instance_id,
            nvswitch=self.nvswitch,
            nvlink=self.nvlink,
            hostname=self.hostname,
        )


class MigLine(msgspec.Struct, rename="camel"):
    gpu: str | int
    """The number or UUID of the GPU."""
    gpu_instance_id: str | int


class PodLine(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    container: str
    resource: str
    device_ids: list[str]
    uid: str = ""
    labels: dict[str, str] = {}


class OptionsLine(msgspec.Struct, rename="camel"):
    id_type: str = "uid"
    virtual_gpus: bool = False
    old_namespace: bool = False
    pod_labels: bool = False
    pod_uid: bool = False
    allow: list[str] = []
    resource_names: list[str] = []


class Case(msgspec.Struct, rename="camel"):
    id: str
    stage: str
    text: str = ""
    via: str = "file"
    profiling_fields: list[str | int] = []
    """By name or number."""
    group: str = "gpu"
    counter: CounterLine | None = None
    samples: list[SampleLine] = []
    mig_devices: dict[str, MigLine] = {}
    pods: list[PodLine] = []
    options: OptionsLine = msgspec.field(default_factory=OptionsLine)
    files: dict[str, str] = {}
    allow: list[str] = []
    label: str = ""
    device_id: str = ""
