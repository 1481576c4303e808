"""Reads pages of the kubelets of joined machines, for parts of this process."""

from __future__ import annotations

from collections.abc import Sequence

import aiohttp

from shoal.embedded.apiserver.dynamic.bounded import TooLongError, read_bounded
from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.streams.kubelets import Kubelets, dial_words
from shoal.embedded.apiserver.streams.node_connections import NodeConnections
from shoal.units.errors import TemporaryError

_MOST_BYTES = 8 << 20
_RETRY_S = 15.0


class JoinedKubelets:
    def __init__(self, connections: NodeConnections, kubelets: Kubelets) -> None:
        self._connections, self._kubelets = connections, kubelets

    def connected(self) -> Sequence[str]:
        """The nodes whose machines are connected now."""
        return self._connections.connected()

    async def page(self, node: str, path: str) -> bytes:
        """Raises TemporaryError."""
        try:
            kubelet = await self._connections.kubelet(node)
            async with self._kubelets.get(kubelet, path) as answer:
                text = await read_bounded(answer, _MOST_BYTES)
                if answer.status != 200:
                    raise TemporaryError(f"{path} is answered with {answer.status}", _RETRY_S)
                return text
        except ApiError as error:
            raise TemporaryError(error.message, _RETRY_S) from None
        except TooLongError:
            raise TemporaryError(f"{path} is longer than {_MOST_BYTES} bytes", _RETRY_S) from None
        except (aiohttp.ClientError, OSError) as error:
            raise TemporaryError(dial_words(error, kubelet), _RETRY_S) from None
