"""Tracks host ports in use, by port; only pods with host ports pay for the look-up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.asks import HostPort


class Ports:
    """(port, protocol) -> row -> addresses taken there, repeats included."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken: dict[tuple[int, str], dict[int, list[str]]] = {}

    def take(self, row: int, ports: tuple[HostPort, ...]) -> None:
        for port in ports:
            self._taken.setdefault((port.port, port.protocol), {}).setdefault(row, []).append(port.ip)

    def give(self, row: int, ports: tuple[HostPort, ...]) -> None:
        for port in ports:
            by_row = self._taken[port.port, port.protocol]
            by_row[row].remove(port.ip)
            if not by_row[row]:
                del by_row[row]
            if not by_row:
                del self._taken[port.port, port.protocol]

    def free(self, wanted: tuple[HostPort, ...], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows have all the wanted ports free."""
        blocked = {
            row
            for port in wanted
            for row, addresses in self._taken.get((port.port, port.protocol), {}).items()
            if any(HostPort(port.port, port.protocol, ip).conflicts(port) for ip in addresses)
        }
        if not blocked:
            return np.ones(len(rows), np.bool_)
        return ~np.isin(rows, np.fromiter(blocked, np.int64, len(blocked)))

    def in_use(self) -> dict[tuple[int, str], dict[int, list[str]]]:
        """A copy for comparison; the order of addresses carries no meaning."""
        return {
            port: {row: sorted(ips) for row, ips in sorted(by_row.items())}
            for port, by_row in sorted(self._taken.items())
        }
