"""Marks the layers of a node that work by files in a folder of the host, and waits for those of others.

The names and the content are those of NVIDIA's validator, so that components of both projects wait for each other. A
file of the driver has the variables that the container toolkit reads. A layer that fails loses its file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from shoal.agent.validator.layers import LayerResult
from shoal.units.errors import UserError, Where

WAIT_S, WATCH_S = 5.0, 30.0
_CONTAINER_DRIVER = ".driver-ctr-ready"
"""The file of the driver container."""
Pause = Callable[[float], bool]
"""Waits so many seconds; returns whether the process has to end."""


class ReadyFiles:
    def __init__(self, folder: Path, driver_root: str = "/run/nvidia/driver") -> None:
        """`driver_root`: where the driver container installs the driver on the host."""
        self._folder = folder
        self._driver_root = driver_root

    def has(self, layer: str) -> bool:
        return self._path(layer).is_file()

    def take(self, results: Sequence[LayerResult], wanted: Sequence[str]) -> None:
        """Write the file of each wanted layer that works, and remove that of each that fails. Raises `UserError`."""
        failed = any(one.state == "failed" for one in results)
        for result in results:
            if result.layer not in wanted:
                continue
            if result.state == "failed" or (failed and result.state == "skipped"):
                self._path(result.layer).unlink(missing_ok=True)
            elif not self.has(result.layer):
                self._write(result.layer)

    def _write(self, layer: str) -> None:
        content = self._driver_variables() if layer == "driver" else ""
        path = self._path(layer)
        unfinished = path.with_name(f".{path.name}.new")
        try:
            unfinished.write_text(content)
            unfinished.replace(path)
        except OSError as error:
            fix = "mount the folder of the host writable"
            what = f"cannot be written: {error.strerror or error}"
            raise UserError(what, where=Where(file=str(path)), fix=fix) from error

    def _path(self, layer: str) -> Path:
        return self._folder / f"{layer}-ready"

    def _driver_variables(self) -> str:
        is_host = not (self._folder / _CONTAINER_DRIVER).exists()
        root, inside = ("/", "/host") if is_host else (self._driver_root, "/driver-root")
        values = {
            "IS_HOST_DRIVER": "true" if is_host else "false",
            "NVIDIA_DRIVER_ROOT": root,
            "DRIVER_ROOT_CTR_PATH": inside,
            "NVIDIA_DEV_ROOT": root,
            "DEV_ROOT_CTR_PATH": inside,
        }
        return "".join(f"{name}={value}\n" for name, value in values.items())


def wait_for_files(layers: Sequence[str], files: ReadyFiles, pause: Pause, tell: Callable[[str], None]) -> bool:
    """Returns when all are there, or False when the process has to end first."""
    told = ""
    while missing := [layer for layer in layers if not files.has(layer)]:
        words = f"waiting for the validation of {', '.join(missing)}"
        if words != told:
            told = words
            tell(words)
        if pause(WAIT_S):
            return False
    return True


def validate_repeatedly(
    run: Callable[[], Sequence[LayerResult]],
    take: Callable[[Sequence[LayerResult]], None],
    pause: Pause,
    show: Callable[[Sequence[LayerResult]], None],
    *,
    is_endless: bool,
) -> bool:
    """Until no layer fails, or until the process has to end. Results are shown when they change. Returns whether the
    last result had no failure.
    """
    shown: Sequence[LayerResult] = ()
    while True:
        results = tuple(run())
        if results != shown:
            shown = results
            show(results)
        take(results)
        is_good = all(one.state != "failed" for one in results)
        if is_good and not is_endless:
            return True
        if pause(WATCH_S if is_endless and is_good else WAIT_S):
            return is_good
