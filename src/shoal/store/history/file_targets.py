"""Where files are exported to: a folder, or a bucket of S3 or of a server that speaks its protocol.

Guarantees: a file is there as a whole or not at all, and replaces an earlier one of its name.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from shoal.units.errors import TemporaryError, UserError, Where, one_line

_S3 = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?")
_WHERE = Where(path="--parquet")


def file_target(target: str) -> Callable[[str, bytes], None]:
    """Stores a file under a path. Raises UserError for a target that cannot be used."""
    if "://" not in target:
        return _folder(Path(target).expanduser().absolute())
    found = _S3.fullmatch(target)
    if found is None:
        raise UserError("is no folder and no bucket", where=_WHERE, fix="write a folder, or s3://BUCKET/PREFIX")
    prefix = (found[2] or "").strip("/")
    return _bucket(found[1], f"{prefix}/" if prefix else "")


def _folder(folder: Path) -> Callable[[str, bytes], None]:
    def put(path: str, data: bytes) -> None:
        target = folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=".part")
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(data)
                Path(name).replace(target)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    Path(name).unlink()
        except OSError as error:
            raise UserError(f"cannot be written: {error.strerror or error}", where=Where(file=str(target))) from None

    return put


def _bucket(bucket: str, prefix: str) -> Callable[[str, bytes], None]:
    client = _client()
    errors = import_module("botocore.exceptions")

    def put(path: str, data: bytes) -> None:
        where = Where(file=f"s3://{bucket}/{prefix}{path}")
        try:
            client.put_object(Bucket=bucket, Key=f"{prefix}{path}", Body=data)
        except errors.ClientError as error:
            raise UserError(f"cannot be written: {one_line(str(error))}", where=where) from None
        except (errors.NoCredentialsError, errors.PartialCredentialsError) as error:
            fix = "give them as for the AWS command line, by environment variables or a profile"
            raise UserError(f"cannot be written: {one_line(str(error))}", where=where, fix=fix) from None
        except errors.BotoCoreError as error:
            raise TemporaryError(f"cannot be written: {one_line(str(error))}", 1.0, where=where) from None

    return put


def _client() -> Any:
    try:
        sdk = import_module("boto3")
    except ImportError:
        fix = "install it with pip install 'shoal[aws]'"
        raise UserError("the SDK of AWS (boto3) is not installed", where=_WHERE, fix=fix) from None
    config = import_module("botocore.config").Config(connect_timeout=10, read_timeout=60)
    try:
        return sdk.session.Session().client("s3", config=config)
    except (ValueError, import_module("botocore.exceptions").BotoCoreError) as error:
        raise UserError(f"cannot be used: {one_line(str(error))}", where=_WHERE) from None
