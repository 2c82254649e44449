"""Sessions of boto3 with the credentials of an install, of an organization, or of a role."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import boto3
import orjson
from botocore.loaders import JSONFileLoader
from botocore.session import get_session

from runtime.store.base import Credentials


def session_of(credentials: Credentials | None, region: str) -> boto3.Session:
    session: Any = _botocore_session()
    if credentials is None:
        return boto3.Session(botocore_session=session, region_name=region)
    if not credentials.role_arn:
        key, secret, token = credentials.access_key, credentials.secret_key, credentials.session_token or None
        return boto3.Session(key, secret, token, botocore_session=session, region_name=region)
    from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials

    base = _botocore_session()
    base.set_config_variable("region", region)  # of the server that hands out the role's credentials
    arguments = {
        "RoleSessionName": "ondatra",
        **({"ExternalId": credentials.external_id} if credentials.external_id else {}),
    }
    fetcher = AssumeRoleCredentialFetcher(
        base.create_client, base.get_credentials(), credentials.role_arn, extra_args=arguments
    )
    session._credentials = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
    return boto3.Session(botocore_session=session, region_name=region)


class _Descriptions(JSONFileLoader):
    """Botocore's megabytes of JSON about S3, read by a quicker parser: half of what a client takes to be made."""

    def _load_file(self, full_path: str, open_method: Callable[[str, str], Any]) -> Any:
        if not os.path.isfile(full_path):
            return None
        with open_method(full_path, "rb") as file:
            return orjson.loads(file.read())


def _botocore_session() -> Any:
    session = get_session()
    session.get_component("data_loader").file_loader = _Descriptions()
    return session
