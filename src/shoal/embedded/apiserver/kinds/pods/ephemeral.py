"""Adding ephemeral containers to a pod that exists: they may be added, and nothing else."""

from __future__ import annotations

from shoal.embedded.apiserver.field_errors import FieldError, not_allowed
from shoal.embedded.apiserver.kinds.complaints import Errors, Obj
from shoal.embedded.apiserver.kinds.pods.containers import check_ephemeral_containers, surroundings
from shoal.embedded.apiserver.strategy import Strategy, keep_metadata


class EphemeralContainersStrategy(Strategy):
    """Of the subresource; defaults are the pod's own."""

    def prepare_update(self, new: Obj, old: Obj) -> None:
        asked = (new.get("spec") or {}).get("ephemeralContainers")
        new["spec"] = {key: value for key, value in old["spec"].items() if key != "ephemeralContainers"}
        if asked:
            new["spec"]["ephemeralContainers"] = asked
        if "status" in old:
            new["status"] = old["status"]
        keep_metadata(new, old)

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:
        errors: Errors = []
        path, spec = "spec.ephemeralContainers", new["spec"]
        volumes = frozenset(volume.get("name", "") for volume in spec.get("volumes") or ())
        check_ephemeral_containers(spec, path, surroundings(spec, volumes), errors)
        asked = {one.get("name", ""): one for one in spec.get("ephemeralContainers") or ()}
        for former in old["spec"].get("ephemeralContainers") or ():
            name = former.get("name", "")
            if name not in asked:
                errors.append(not_allowed(path, f'existing ephemeral containers "{name}" may not be removed\n'))
            elif asked[name] != former:
                errors.append(not_allowed(path, f'existing ephemeral containers "{name}" may not be changed\n'))
        return errors


EPHEMERAL_CONTAINERS = EphemeralContainersStrategy()
