"""Reads the file with which Cluster Autoscaler finds an external gRPC provider: its `--cloud-config`."""

from __future__ import annotations

from pathlib import Path

import msgspec
import yaml

from shoal.units.errors import UserError, Where

_LARGEST = 1 << 16


class ExternalGrpcSettings(msgspec.Struct, frozen=True):
    address: str
    """Host and port."""
    key: bytes = b""
    cert: bytes = b""
    ca: bytes = b""
    """Empty: the connection is not encrypted."""


def external_grpc_settings(file: Path) -> ExternalGrpcSettings:
    """Raises UserError if the file, or one that it names, cannot be read."""
    where = Where(file=str(file))
    try:
        raw = yaml.safe_load(_read(file, where).decode())
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise UserError("the file is not YAML", where=where) from error
    if not isinstance(raw, dict) or not isinstance(raw.get("address"), str) or not raw["address"]:
        fix = "as in address: 127.0.0.1:8086"
        raise UserError("the file has no address of the provider", where=where.with_path("address"), fix=fix)
    host, _, port = raw["address"].rpartition(":")
    if not host or not port.isdecimal():
        raise UserError(
            "the address has no port", where=where.with_path("address"), fix="as in address: 127.0.0.1:8086"
        )
    named = {key: raw.get(key) or "" for key in ("key", "cert", "cacert")}
    for key, value in named.items():
        if not isinstance(value, str):
            raise UserError("the field is no path of a file", where=where.with_path(key))
    if bool(named["key"]) != bool(named["cert"]):
        raise UserError("key and cert belong together", where=where.with_path("key" if named["cert"] else "cert"))
    if named["key"] and not named["cacert"]:
        raise UserError("a client certificate needs the CA of the provider", where=where.with_path("cacert"))
    content = {key: _read(Path(path), where.with_path(key)) if path else b"" for key, path in named.items()}
    return ExternalGrpcSettings(raw["address"], content["key"], content["cert"], content["cacert"])


def _read(file: Path, where: Where) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(_LARGEST + 1)
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}", where=where) from error
    if len(content) > _LARGEST:
        raise UserError(f"{file} is larger than {_LARGEST} bytes", where=where)
    return content
