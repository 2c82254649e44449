"""Both stores keep the same promises; the S3 one against a real server."""

from __future__ import annotations

import io
import os
import uuid

import duckdb
import pytest
from proxy import before
from seaweed import BUCKET, S3Server
from test_records import put, record

from runtime.errors import ConfigError, StoreError
from runtime.records import exports, query
from runtime.records.filter import Filter
from runtime.sources import read_task
from runtime.store.base import AlreadyThere, Credentials
from runtime.store.folder import FolderStore
from runtime.store.opening import open_store
from runtime.store.s3 import PART_SIZE, S3Store


def own(server: S3Server, access="devkey", secret="devsecret123"):
    return Credentials(access_key=access, secret_key=secret, region="us-east-1", endpoint=server.endpoint)


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.server)])
def store(request, tmp_path):
    if request.param == "folder":
        return FolderStore(tmp_path / "store")
    server = request.getfixturevalue("s3")
    return S3Store(BUCKET, uuid.uuid4().hex, credentials=own(server), cache_dir=tmp_path / "cache")


def test_a_file_that_was_put_is_read_back(store):
    store.put_new("a/b.parquet", b"one")
    assert (store.get("a/b.parquet"), store.local("a/b.parquet").read_bytes(), store.exists("a/b.parquet")) == (
        b"one",
        b"one",
        True,
    )


def test_a_file_is_never_overwritten_by_put_new(store):
    store.put_new("a/b.parquet", b"one")
    with pytest.raises(AlreadyThere, match="exists already"):
        store.put_new("a/b.parquet", b"two")
    assert store.get("a/b.parquet") == b"one"


def test_replace_gives_readers_the_new_file_whole(store):
    store.replace("m/facts.parquet", b"one")
    assert store.local("m/facts.parquet").read_bytes() == b"one"
    store.replace("m/facts.parquet", b"two")
    assert (store.get("m/facts.parquet"), store.local("m/facts.parquet").read_bytes()) == (b"two", b"two")


def test_a_file_larger_than_one_part_arrives_whole(store):
    data = os.urandom(PART_SIZE + 1_000)
    store.put_new("big.bin", data)
    assert store.get("big.bin") == data
    with pytest.raises(AlreadyThere):
        store.put_new("big.bin", data)


def test_a_missing_file_is_an_error_that_names_it(store):
    assert not store.exists("no/such")
    with pytest.raises(StoreError, match="no/such cannot be read"):
        store.get("no/such")


def test_deleting_a_folder_removes_its_files_and_no_others(store):
    for path in ("r/1/a", "r/1/b/c", "r/10/d"):
        store.put_new(path, b"x")
    assert (store.delete_prefix("r/1"), list(store.list("r"))) == (2, ["r/10/d"])


def test_a_check_leaves_nothing_behind(store):
    store.check()
    assert list(store.list("")) == []


def test_a_crash_while_writing_leaves_no_half_file(tmp_path, monkeypatch):
    store = FolderStore(tmp_path)
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        store.put_new("a.parquet", b"x")
    assert (store.exists("a.parquet"), list(store.list(""))) == (False, [])


def test_a_path_cannot_leave_the_folder(tmp_path):
    with pytest.raises(StoreError, match="leads out of the store"):
        FolderStore(tmp_path / "store").get("../secret")


def test_a_folder_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "store").write_text("a file where a folder should be")
    with pytest.raises(StoreError, match="cannot be written"):
        FolderStore(tmp_path / "store").check()


@pytest.mark.parametrize("url", ["/data/store", "s3://", "http://x/y", "file://host/x"])
def test_an_url_of_another_sort_is_refused(url):
    with pytest.raises(ConfigError, match="ONDATRA_TRACKING_URL"):
        open_store(url)


@pytest.mark.parametrize(
    ("bucket", "access", "secret", "said"),
    [
        (BUCKET, "devkey", "wrong", "secret key does not belong"),
        (BUCKET, "nobody", "geheim", "access key is unknown"),
        ("missing-bucket", "devkey", "devsecret123", "no such bucket"),
        (BUCKET, "rokey", "rosecret123", "not allowed to do that"),
    ],
)
def test_a_check_says_why_a_bucket_cannot_be_used(s3, tmp_path, bucket, access, secret, said):
    with pytest.raises(StoreError, match=said) as error:
        S3Store(bucket, "p", credentials=own(s3, access, secret), cache_dir=tmp_path).check()
    assert bucket in str(error.value) and secret not in str(error.value)


def through(proxy, tmp_path, prefix):
    return S3Store(
        BUCKET,
        prefix,
        credentials=Credentials("devkey", "devsecret123", region="us-east-1", endpoint=proxy.url),
        cache_dir=tmp_path / "p",
    )


@pytest.mark.parametrize("size", [100_000, PART_SIZE + 100_000])
def test_a_connection_that_is_cut_in_the_middle_of_a_put_loses_and_doubles_nothing(s3, tmp_path, size):
    data, prefix = os.urandom(size), uuid.uuid4().hex
    straight = S3Store(BUCKET, prefix, credentials=own(s3), cache_dir=tmp_path / "s")
    with before(s3.endpoint) as proxy:
        store = through(proxy, tmp_path, prefix)
        proxy.cut = 1
        store.put_new("cut", data)  # the request is sent again
        proxy.deaf = 1
        store.put_new("deaf", data)  # it was written, but the answer was lost: the second request meets its own file
        assert (straight.get("cut"), straight.get("deaf"), proxy.cut, proxy.deaf) == (data, data, 0, 0)
        straight.put_new("theirs", b"other")
        proxy.deaf = 1
        with pytest.raises(AlreadyThere):
            store.put_new("theirs", data)
        proxy.cut = 10**6
        with pytest.raises(StoreError, match="never cannot be written"):
            store.put_new("never", data)
    assert sorted(straight.list("")) == ["cut", "deaf", "theirs"]


def test_a_bucket_in_another_region_is_told_with_its_region(tmp_path):
    """As AWS answers; the test server has no regions."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    from threading import Thread

    class Elsewhere(BaseHTTPRequestHandler):
        def do_PUT(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            body = (
                b"<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region 'us-east-1' is "
                b"wrong</Message></Error>"
            )
            self.send_response(400)
            self.send_header("x-amz-bucket-region", "eu-north-1")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    Thread(target=server.serve_forever, daemon=True).start()
    store = S3Store(
        "b",
        "",
        credentials=Credentials("k", "s", region="us-east-1", endpoint=f"http://127.0.0.1:{server.server_port}"),
        cache_dir=tmp_path,
    )
    with pytest.raises(StoreError, match=r"another region than us-east-1 \(eu-north-1\)"):
        store.check()
    server.shutdown()


def test_a_server_that_is_down_is_named(tmp_path):
    store = S3Store(
        "b",
        "p",
        credentials=Credentials("k", "s", region="us-east-1", endpoint="http://127.0.0.1:9"),
        cache_dir=tmp_path,
    )
    with pytest.raises(StoreError, match=r"127\.0\.0\.1:9 can be reached"):
        store.get("x")


def test_the_install_uses_the_standard_aws_variables(s3, tmp_path, monkeypatch):
    for name, value in s3.env.items():
        monkeypatch.setenv(name, value)
    store = S3Store(BUCKET, uuid.uuid4().hex, cache_dir=tmp_path)
    store.check()
    assert store.url_of("a").startswith(f"s3://{BUCKET}/")


def test_copies_of_s3_files_stay_within_their_bound(s3, tmp_path, monkeypatch):
    monkeypatch.setenv("ONDATRA_STORE_CACHE_BYTES", "2500")
    monkeypatch.setattr("runtime.store.s3.IN_USE_SECONDS", 0)
    store = S3Store(BUCKET, uuid.uuid4().hex, credentials=own(s3), cache_dir=tmp_path)
    for n in range(4):
        store.put_new(f"{n}", bytes(1000))
        store.local(f"{n}")
    assert sum(p.stat().st_size for p in store.local_root().rglob("*") if p.is_file()) == 2000
    assert store.local("0").read_bytes() == bytes(1000)


@pytest.mark.server
def test_a_file_of_a_run_is_fetched_by_one_request_and_looked_at_again_by_another_process_only(s3, tmp_path):
    prefix, path, big = uuid.uuid4().hex, "sync_tracking_datasets/1/1/1/r.parquet", "sync_tracking_datasets/1/1/1/b"

    def opened():
        """As another process has it, with the same folder of copies."""
        store = S3Store(BUCKET, prefix, credentials=own(s3), cache_dir=tmp_path)
        store.get_ready()
        store.client.meta.events.register("before-call.s3", lambda model, **_: asked.append(model.name))
        return store

    asked: list[str] = []
    store = opened()
    data = {path: b"one", big: os.urandom(PART_SIZE + 1)}
    for name, content in data.items():
        store.put_new(name, content)
    asked.clear()

    assert [store.local(path).read_bytes() for _ in range(2)] == [b"one"] * 2
    assert asked == ["GetObject"]
    assert opened().local(path).read_bytes() == b"one"
    assert asked == ["GetObject", "HeadObject"]
    assert store.local(big).read_bytes() == data[big]


def test_records_in_a_bucket_are_asked_and_exported_like_those_in_a_folder(s3, tmp_path):
    store = S3Store(BUCKET, uuid.uuid4().hex, credentials=own(s3), cache_dir=tmp_path)
    files = [put(store, [record(i + 10 * n) for i in range(10)], n) for n in range(3)]
    out = io.BytesIO()
    assert [r["row_id"] for r in query.page(files, offset=8, limit=5).rows] == [8, 9, 10, 11, 12]
    assert [r["row_id"] for r in query.page(files, Filter(identifier="id_0025")).rows] == [25]
    assert exports.export(files, None, "jsonl", out) == 30
    assert f"FROM read_parquet('s3://{BUCKET}/" in query.duckdb_query(files)


def test_a_role_gives_credentials_that_renew_themselves(monkeypatch, tmp_path):
    from botocore.credentials import RefreshableCredentials

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "install")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "install-secret")
    store = S3Store(
        "b",
        "p",
        credentials=Credentials(role_arn="arn:aws:iam::1:role/x", external_id="e", region="us-east-1"),
        cache_dir=tmp_path,
    )
    assert isinstance(store.client._request_signer._credentials, RefreshableCredentials)


def test_credentials_do_not_show_their_secret():
    assert "geheim" not in repr(Credentials("key", "geheim"))


@pytest.mark.server
def test_a_process_without_credentials_puts_one_file_by_the_address_of_its_upload(s3, tmp_path):
    store = S3Store(BUCKET, "staging", credentials=own(s3), cache_dir=tmp_path / "cache")
    told = {
        "paths": [],
        "files": [],
        "folder": "",
        "name": "",
        "select": "SELECT 1 AS id",
        "version": duckdb.__version__,
        "alike": [],
    }
    address = store.upload_url("sources/0.parquet", 60)
    other = address.replace("0.parquet", "1.parquet")

    came = [read_task.copy({**told, "upload": url}) for url in (address, other)]
    assert came == ["", "a task met HTTPError"]
    assert list(store.list("sources")) == ["sources/0.parquet"]
    assert duckdb.sql(f"FROM read_parquet('{store.local('sources/0.parquet')}')").fetchall() == [(1,)]
