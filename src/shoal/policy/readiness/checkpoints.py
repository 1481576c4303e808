"""Whether pods keep what they computed: on a volume claim, in an object store, or by Shoal's library."""

from __future__ import annotations

from shoal.api.checkpoint_annotations import tells_checkpoints
from shoal.policy.pod_templates import PodTemplateView
from shoal.policy.readiness.gpu_software import has_claim, texts_of

STORES = ("s3://", "gs://", "az://", "abfs://", "abfss://", "wasbs://", "hdfs://")
_STORE_VARIABLES = ("AWS_ENDPOINT_URL", "S3_ENDPOINT", "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_STORAGE_ACCOUNT")


def names_store(view: PodTemplateView) -> bool:
    """Whether a container names an object store."""
    for _, container in view.containers():
        if any(store in text for text in texts_of(container) for store in STORES):
            return True
        names = [one.get("name") for one in container.get("env") or () if isinstance(one, dict)]
        if any(name in _STORE_VARIABLES for name in names):
            return True
    return False


def keeps_checkpoints(view: PodTemplateView) -> bool:
    return has_claim(view.spec) or names_store(view) or tells_checkpoints(view.annotations)
