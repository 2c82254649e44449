"""The store in an S3 bucket, with a bounded copy of what was read on this machine's disk."""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config as ClientConfig
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from runtime import config
from runtime.errors import ConfigError, StoreError
from runtime.store.base import AlreadyThere, Credentials, Store
from runtime.store.sessions import session_of

#: Larger files go up in parts of this size.
PART_SIZE = 16 * 1024 * 1024
#: How long an etag is believed of files that may be replaced: fact tables.
ETAG_SECONDS = 60
#: Below these nothing is ever rewritten: an etag once seen holds.
UNCHANGING = ("sync_tracking_datasets/", "api_calls/")
#: A file that was handed out lately is not removed, whatever the bound: somebody may be about to open it.
IN_USE_SECONDS = 120

REASONS = {
    "NoSuchBucket": "there is no such bucket: create it, or correct its name",
    "InvalidAccessKeyId": "the access key is unknown there: check the access key id and the endpoint",
    "SignatureDoesNotMatch": "the secret key does not belong to the access key: check it (AWS_SECRET_ACCESS_KEY, or "
    "the bucket's own)",
    "AccessDenied": "these credentials are not allowed to do that: s3:PutObject, s3:GetObject, s3:DeleteObject and "
    "s3:ListBucket are needed",
    "403": "these credentials are not allowed to do that: s3:PutObject, s3:GetObject, s3:DeleteObject and "
    "s3:ListBucket are needed",
    "RequestTimeTooSkewed": "this machine's clock differs too much from the server's: set the clock",
    "ExpiredToken": "the session token has expired: renew the credentials",
    "InvalidToken": "the session token is not valid: renew the credentials",
}
ELSEWHERE = ("PermanentRedirect", "301", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException")
TAKEN = ("PreconditionFailed", "412", "ConditionalRequestConflict")


class S3Store(Store):
    """Credentials, region and endpoint come from the standard AWS variables unless an organization has its own."""

    near = False

    def __init__(
        self, bucket: str, prefix: str, *, credentials: Credentials | None = None, cache_dir: Path | None = None
    ) -> None:
        self.bucket, self.prefix, self._credentials = bucket, prefix, credentials
        self.url = f"s3://{bucket}/{prefix}".rstrip("/")
        own = credentials or Credentials()
        if credentials and not (own.role_arn or own.access_key and own.secret_key):  # boto3 would take the install's
            raise ConfigError(f"the store {self.url} has neither a role nor a whole key pair of its own: give it one")
        install = config.from_env()
        self.endpoint = own.endpoint or ("" if credentials else install.s3_endpoint or "")
        self.region = own.region or install.s3.region
        whose = hashlib.sha256(f"{self.endpoint}|{bucket}|{own.access_key or own.role_arn}".encode()).hexdigest()[:16]
        self._cache = (cache_dir or install.data_dir / "cache" / "store") / whose
        self._most_bytes = install.store_cache_bytes
        self._etags: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()
        self._client: Any = None

    @property
    def client(self) -> Any:
        """One client for all threads; role credentials renew themselves before they expire."""
        with self._lock:
            if self._client is None:
                ours: Any = {
                    "ignore_configured_endpoint_urls": self._credentials is not None
                }  # boto3's stubs do not know it
                self._client = session_of(self._credentials, self.region).client(
                    "s3",
                    region_name=self.region,
                    endpoint_url=self.endpoint or None,
                    config=ClientConfig(
                        signature_version="s3v4",
                        connect_timeout=5,
                        read_timeout=60,
                        max_pool_connections=16,
                        **ours,
                        retries={"mode": "standard", "max_attempts": 4},
                        s3={"addressing_style": "path" if self.endpoint else "auto"},
                        request_checksum_calculation="when_required",
                        response_checksum_validation="when_required",
                    ),
                )
            return self._client

    def get_ready(self) -> None:
        with self._told("read", ""):
            _ = self.client

    def key_now(self) -> tuple[str, str, str | None]:
        """Key, secret and token as they are at this moment, for another process that reads the bucket; those of a role
        expire."""
        with self._told("read", ""):
            found = self.client._request_signer._credentials
            if found is None:
                raise NoCredentialsError
            now = found.get_frozen_credentials()
            return now.access_key, now.secret_key, now.token

    def _key(self, path: str) -> str:
        return f"{self.prefix}/{path}" if self.prefix else path

    def put_new(self, path: str, data: bytes) -> None:
        with self._told("written", path):
            try:
                if len(data) > PART_SIZE:
                    self._put_parts(path, data, only_new=True)
                else:
                    self.client.put_object(Bucket=self.bucket, Key=self._key(path), Body=data, IfNoneMatch="*")
            except ClientError as error:
                # a request whose answer got lost is sent again and finds its own file
                again = error.response.get("ResponseMetadata", {}).get("RetryAttempts")
                if not again or _code(error) not in (*TAKEN, "NoSuchUpload") or self.get(path) != data:
                    raise

    def replace(self, path: str, data: bytes) -> None:
        self._etags.pop(path, None)
        with self._told("written", path):
            if len(data) > PART_SIZE:
                self._put_parts(path, data, only_new=False)
            else:
                self.client.put_object(Bucket=self.bucket, Key=self._key(path), Body=data)

    def put_file(self, path: str, file: Path) -> None:
        self._etags.pop(path, None)
        with self._told("written", path):
            self.client.upload_file(str(file), self.bucket, self._key(path))

    def upload_url(self, path: str, seconds: int) -> str:
        with self._told("written", path):
            where = {"Bucket": self.bucket, "Key": self._key(path)}
            return str(self.client.generate_presigned_url("put_object", Params=where, ExpiresIn=seconds))

    def _put_parts(self, path: str, data: bytes, *, only_new: bool) -> None:
        where: Any = {"Bucket": self.bucket, "Key": self._key(path)}
        if only_new and self.exists(path):  # saves the parts; the last request decides
            raise AlreadyThere(f"{self.url_of(path)} exists already")
        upload = self.client.create_multipart_upload(**where)["UploadId"]
        try:
            body = io.BytesIO(data)
            parts: list[Any] = []
            while piece := body.read(PART_SIZE):
                number = len(parts) + 1
                answer = self.client.upload_part(**where, UploadId=upload, PartNumber=number, Body=piece)
                parts.append({"PartNumber": number, "ETag": answer["ETag"]})
            condition = {"IfNoneMatch": "*"} if only_new else {}
            self.client.complete_multipart_upload(
                **where, UploadId=upload, MultipartUpload={"Parts": parts}, **condition
            )
        except BaseException:
            with suppress(ClientError, BotoCoreError):
                self.client.abort_multipart_upload(**where, UploadId=upload)
            raise

    def get(self, path: str) -> bytes:
        with self._told("read", path):
            return bytes(self.client.get_object(Bucket=self.bucket, Key=self._key(path))["Body"].read())

    def exists(self, path: str) -> bool:
        return self._etag(path) is not None

    def list(self, prefix: str) -> Iterator[str]:
        begin = len(self.prefix) + 1 if self.prefix else 0
        with self._told("listed", prefix):
            for page in self.client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=self._key(prefix.rstrip("/") + "/")
            ):
                yield from (found["Key"][begin:] for found in page.get("Contents", ()))

    def delete(self, path: str) -> None:
        with self._told("deleted", path):
            self.client.delete_object(Bucket=self.bucket, Key=self._key(path))
        self._etags.pop(path, None)

    def delete_prefix(self, prefix: str) -> int:
        gone, paths = 0, iter(self.list(prefix))
        while some := list(itertools.islice(paths, 1_000)):  # as many as one request takes
            with self._told("deleted", prefix):
                answer = self.client.delete_objects(
                    Bucket=self.bucket, Delete={"Objects": [{"Key": self._key(p)} for p in some], "Quiet": True}
                )
            if wrong := answer.get("Errors"):
                raise StoreError(
                    f"{self.url}/{wrong[0].get('Key')} cannot be deleted: "
                    f"{wrong[0].get('Message') or wrong[0].get('Code')}"
                )
            gone += len(some)
            for path in some:
                self._etags.pop(path, None)
        return gone

    # the copy on disk

    def local_root(self) -> Path:
        return self._cache

    def local(self, path: str) -> Path:
        """One request where nothing of the file is here yet: what the bucket answers says its etag, too."""
        known = self._etags.get(path)
        holds = known is not None and (path.startswith(UNCHANGING) or time.monotonic() - known[1] < ETAG_SECONDS)
        if known and holds:
            place = self._place(path, known[0])
        elif any(self._copies(path)):
            if (etag := self._etag(path)) is None:
                raise StoreError(f"{self.url_of(path)} cannot be read: it is not there")
            self._etags[path] = etag, time.monotonic()
            place = self._place(path, etag)
        else:
            return self._fetch(path)

        if place.exists():
            os.utime(place)
            return place
        return self._fetch(path)

    def _place(self, path: str, etag: str) -> Path:
        """Where the copy of that state of the file lies."""
        name = f"{self._named(path)}.{hashlib.sha256(etag.encode()).hexdigest()[:24]}"
        return self._cache / name[:2] / f"{name}{Path(path).suffix}"

    def _copies(self, path: str) -> Iterator[Path]:
        """Copies of whatever state of the file."""
        name = self._named(path)
        return (self._cache / name[:2]).glob(f"{name}.*")

    def _named(self, path: str) -> str:
        return hashlib.sha256(self._key(path).encode()).hexdigest()[:40]

    def locals(self, paths: Sequence[str]) -> Sequence[Path]:
        with ThreadPoolExecutor(8, thread_name_prefix="fetch") as pool:
            return list(pool.map(self.local, paths))

    def _fetch(self, path: str) -> Path:
        with self._told("read", path):
            found = self.client.get_object(Bucket=self.bucket, Key=self._key(path))
            place = self._place(path, found["ETag"])
            place.parent.mkdir(parents=True, exist_ok=True)
            temporary = place.with_name(f"{uuid.uuid4().hex}.part")
            try:
                self._write(path, found, temporary)
                os.replace(temporary, place)
            finally:
                temporary.unlink(missing_ok=True)
        self._etags[path] = found["ETag"], time.monotonic()
        self._trim()
        return place

    def _write(self, path: str, found: Any, place: Path) -> None:
        """The file into that place: what is large comes in parts at the same time."""
        if found["ContentLength"] > PART_SIZE:
            found["Body"].close()
            self.client.download_file(self.bucket, self._key(path), str(place))
            return
        with place.open("wb") as file:
            for piece in found["Body"].iter_chunks(1024 * 1024):
                file.write(piece)

    def _trim(self) -> None:
        """Removes what was not used longest until the copies are within their bound."""
        with self._lock:
            files = sorted(
                ((s.st_mtime, s.st_size, p) for p in self._cache.rglob("*") if p.is_file() and (s := p.stat())),
                key=lambda f: f[0],
            )
            total, now = sum(size for _, size, _ in files), time.time()
            for used, size, place in files:
                if total <= self._most_bytes or now - used < IN_USE_SECONDS:
                    return
                place.unlink(missing_ok=True)
                total -= size

    # errors

    def _etag(self, path: str) -> str | None:
        try:
            with self._told("read", path):
                return str(self.client.head_object(Bucket=self.bucket, Key=self._key(path))["ETag"])
        except _NotThere:
            return None

    @contextmanager
    def _told(self, what: str, path: str) -> Iterator[None]:
        """Turns the client's errors into one sentence that names the file, the reason and the way out."""
        try:
            yield
        except ClientError as error:
            raise self._explained(what, path, error) from None
        except NoCredentialsError:
            raise StoreError(
                f"{self.url_of(path)} cannot be {what}: there are no credentials; set AWS_ACCESS_KEY_ID and "
                f"AWS_SECRET_ACCESS_KEY"
            ) from None
        except (BotoCoreError, OSError) as error:
            where = self.endpoint or f"region {self.region}"
            raise StoreError(
                f"{self.url_of(path)} cannot be {what}: {error}; check that {where} can be reached"
            ) from None
        except boto3.exceptions.Boto3Error as error:
            raise StoreError(f"{self.url_of(path)} cannot be {what}: {error}") from None

    def _explained(self, what: str, path: str, error: ClientError) -> StoreError:
        code = _code(error)
        headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        said = f"{self.url_of(path)} cannot be {what}"
        if error.operation_name == "AssumeRole":
            role, told = (
                (self._credentials or Credentials()).role_arn,
                error.response.get("Error", {}).get("Message") or code,
            )
            return StoreError(
                f"{said}: the role {role} cannot be assumed ({told}); its trust policy has to allow this install, "
                f"with the external id "
                "of the organization"
            )
        if code in TAKEN:
            return AlreadyThere(f"{self.url_of(path)} exists already")
        if code in ("NoSuchKey", "404", "NotFound"):
            return _NotThere(f"{said}: it is not there")
        if code in ELSEWHERE:
            region = headers.get("x-amz-bucket-region", "")
            there = f" ({region})" if region else ""
            return StoreError(
                f"{said}: the bucket lies in another region than {self.region}{there}; "
                "name the bucket's own (AWS_REGION, or its region on the page Store)"
            )
        return StoreError(
            f"{said}: {REASONS.get(code) or error.response.get('Error', {}).get('Message') or code} ({code})"
        )


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


class _NotThere(StoreError):
    """The file does not exist."""
