"""Serves the driver of resource claims to the kubelet: the calls for claims, the health of devices, the registration.

The kubelet watches its folder of registrations and asks each socket there for the driver's name. Therefore the service
listens before the registration does, and both sockets are made again if another process removes them.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc

from shoal.agent.dra.driver_calls import (
    HEALTH_VERSION,
    PLUGIN_TYPE,
    VERSION,
    DraService,
    HealthService,
    dra_handlers,
    health_handlers,
    registration_handlers,
)
from shoal.agent.protos import pluginregistration_pb2 as registration
from shoal.devices.claimable_devices import CLAIM_DRIVER
from shoal.units.errors import TemporaryError

_log = logging.getLogger("shoal.agent.dra")
_THREADS, _STOP_S, _RETRY_S = 8, 1.0, 5.0


class DriverServer:
    """Implements `RegistrationService`. `plugins`: the kubelet's folder of drivers; `registry`: of registrations."""

    def __init__(self, plugins: Path, registry: Path, service: DraService, health: HealthService) -> None:
        self.socket = plugins / CLAIM_DRIVER / "dra.sock"
        self.registration = registry / f"{CLAIM_DRIVER}-reg.sock"
        self._service, self._health = service, health
        self._servers: list[tuple[Path, grpc.Server]] = []

    def check(self) -> None:
        """Listen, if it does not. Raises `TemporaryError` if a socket cannot be made."""
        if self._servers and all(path.exists() for path, _ in self._servers):
            return
        self.stop()
        try:
            self._listen(self.socket, dra_handlers(self._service), health_handlers(self._health))
            self._listen(self.registration, registration_handlers(self))
        except (OSError, RuntimeError) as error:
            self.stop()
            reason = getattr(error, "strerror", None) or str(error)
            raise TemporaryError(f"the kubelet cannot reach the driver of claims: {reason}", _RETRY_S) from error

    def stop(self) -> None:
        # The registration first: the kubelet must not find a driver that does not listen.
        for path, server in reversed(self._servers):
            server.stop(_STOP_S).wait(_STOP_S)
            with suppress(OSError):
                path.unlink(missing_ok=True)
        self._servers.clear()

    def info(self) -> registration.PluginInfo:
        return registration.PluginInfo(
            type=PLUGIN_TYPE,
            name=CLAIM_DRIVER,
            endpoint=str(self.socket.absolute()),
            supported_versions=[VERSION, HEALTH_VERSION],
        )

    def registered(self, status: registration.RegistrationStatus) -> None:
        if status.plugin_registered:
            _log.info("the kubelet has registered %s", CLAIM_DRIVER)
        else:
            _log.warning("the kubelet has not registered %s: %s", CLAIM_DRIVER, status.error)

    def _listen(self, path: Path, *handlers: grpc.GenericRpcHandler[Any, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        server = grpc.server(ThreadPoolExecutor(_THREADS, thread_name_prefix=f"dra-{path.stem}"))
        server.add_generic_rpc_handlers(handlers)
        server.add_insecure_port(f"unix:{path}")
        server.start()
        self._servers.append((path, server))
