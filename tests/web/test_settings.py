"""Settings that cannot be used are told all at once, each with its name, what stands there and what is expected."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from runtime import config
from runtime.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
WRONG = {
    "ONDATRA_LAKE_URL": "/srv/lake",
    "ONDATRA_STAGING_URL": "s3:bucket",
    "ONDATRA_TRACKING_URL": "file://elsewhere/store",
    "REDIS_URL": "http://u:hush@redis",
    "SPARK_MASTER": "spork://host:7077",
    "AWS_ENDPOINT_URL_S3": "minio:9000",
    "SPARK_DRIVER_MEMORY": "lots",
    "ONDATRA_DUCKDB_MEMORY": "2",
    "ONDATRA_STORE_CACHE_BYTES": "2GB",
    "ONDATRA_ENCRYPTION_KEY": "hush",
    "ONDATRA_BUCKET_ENDPOINTS": "https://s3.example, minio",
    "ONDATRA_MOST_UNWRITTEN": "-1",
    "ONDATRA_SYNC_LOG": "perhaps",
    "ONDATRA_BUILDS": "\u00b2",
    "ONDATRA_SITE_URL": "ondatra.example",
    "ONDATRA_WEBHOOK_ENDPOINTS": "http://hooks, pager",
    "ONDATRA_TLS_PROXY": "nginx",
}
PLACE = "file:///FOLDER or s3://BUCKET/PREFIX is expected"
TOLD = [
    f"ondatra.E002 ONDATRA_LAKE_URL is '/srv/lake': {PLACE}",
    f"ondatra.E003 ONDATRA_STAGING_URL is 's3:bucket': {PLACE}",
    f"ondatra.E004 ONDATRA_TRACKING_URL is 'file://elsewhere/store': {PLACE}",
    "ondatra.E005 REDIS_URL is '***': redis://HOST:PORT/0 is expected",
    "ondatra.E006 SPARK_MASTER is 'spork://host:7077': local[2] or spark://HOST:7077 is expected",
    "ondatra.E007 AWS_ENDPOINT_URL_S3 is 'minio:9000': http(s)://HOST is expected",
    "ondatra.E008 SPARK_DRIVER_MEMORY is 'lots': a size such as 1800m or 4g is expected",
    "ondatra.E009 ONDATRA_DUCKDB_MEMORY is '2': a size such as 2GB or 500MB is expected",
    "ondatra.E010 ONDATRA_STORE_CACHE_BYTES is '2GB': a whole number from 0 on is expected",
    "ondatra.E011 ONDATRA_ENCRYPTION_KEY is 'a key of 4 characters': keys of at least 32 characters are expected, for "
    "example 48 random ones",
    "ondatra.E012 ONDATRA_BUCKET_ENDPOINTS is 'minio': addresses http(s)://HOST with commas between are expected",
    "ondatra.E013 ONDATRA_MOST_UNWRITTEN is '-1': a whole number from 1 on is expected",
    "ondatra.E014 ONDATRA_SYNC_LOG is 'perhaps': on or off is expected",
    "ondatra.E015 ONDATRA_BUILDS is '\u00b2': a whole number from 1 on is expected",
    "ondatra.E024 ONDATRA_SITE_URL is 'ondatra.example': http(s)://HOST is expected",
    "ondatra.E025 ONDATRA_WEBHOOK_ENDPOINTS is 'pager': addresses http(s)://HOST with commas between are expected",
    "ondatra.E030 ONDATRA_TLS_PROXY is 'nginx': an IP address, or * for any, is expected",
]
DJANGOS = {
    "ONDATRA_UPKEEP": "every night",
    "ONDATRA_FAULT": "somewhere",
    "DATABASE_URL": "mysql://u:hush@h/n",
    "DJANGO_DEBUG": "maybe",
    "EMAIL_URL": "imap://u:hush@h",
    "EMAIL_FROM": "ondatra",
}


#: Secrets of push functions, and what other programs than ours mean by a variable.
READS_ITSELF = {
    "ondatra_web/wsgi.py",  # which module the settings are
    "runtime/custody/secrets.py",
    "runtime/lake/java.py",  # JAVA_HOME
    "runtime/lake/jars.py",  # what a process of Python's gets
    "runtime/lake/jvm.py",  # where Spark and Java are, as their own scripts look
    "runtime/lake/spark.py",  # what the JVM gets
    "runtime/push/sandbox.py",  # what the process of push functions gets
    "ondatra_web/command_line.py",  # which project, which settings module
    "ondatra_web/management/commands/up.py",  # what the processes that it starts get
    "ondatra_web/runs/asking.py",  # whether two processes see the same
    "runtime/sources/read_task.py",  # where Spark lets its tasks write
    "runtime/sql/files/places.py",  # DATABASE_URL: which file no model may read
    "runtime/push/http/client.py",  # SSL_CERT_FILE and its like
}


def manage(folder: Path, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "PYTHONUNBUFFERED")}
    return subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=ROOT,
        env={**kept, "ONDATRA_DATA_DIR": str(folder), **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_settings_are_read_in_one_place() -> None:
    places = {
        str(p.relative_to(ROOT))
        for half in ("runtime", "ondatra_web")
        for p in (ROOT / half).rglob("*.py")
        if "os.environ" in p.read_text(encoding="utf-8")
    }
    assert places - READS_ITSELF == {"runtime/config.py", "ondatra_web/settings.py"}


def test_every_wrong_setting_is_told_with_its_name_what_stands_there_and_what_is_expected() -> None:
    assert [f"{w.id} {w}" for w in config.read(WRONG).wrong] == TOLD


def test_a_wrong_setting_leaves_the_usual_value() -> None:
    usual, found = config.read({}), config.read(WRONG)

    names = ("lake_url", "spark_master", "driver_memory", "duckdb_memory", "store_cache_bytes", "builds", "s3_endpoint")
    assert {n: getattr(found, n) for n in names} == {n: getattr(usual, n) for n in names}


def test_what_uses_a_setting_refuses_every_wrong_one() -> None:
    with pytest.raises(ConfigError) as refused:
        config.from_env({"ONDATRA_BUILDS": "0", "ONDATRA_SYNC_LOG": "perhaps"})

    assert str(refused.value).splitlines() == [
        "ONDATRA_SYNC_LOG is 'perhaps': on or off is expected",
        "ONDATRA_BUILDS is '0': a whole number from 1 on is expected",
    ]


def test_right_settings_are_taken_as_they_are() -> None:
    found = config.from_env(
        {"ONDATRA_LAKE_URL": "s3://bucket/lake/", "SPARK_MASTER": "local[*]", "ONDATRA_BUILDS": " 3 "}
    )

    assert (found.lake_url, found.spark_master, found.builds) == ("s3://bucket/lake", "local[*]", 3)


def test_keys_and_passwords_are_not_in_the_text_of_the_settings() -> None:
    found = config.read({"AWS_SECRET_ACCESS_KEY": "hush-hush", "ONDATRA_ENCRYPTION_KEY": "hush" * 8})

    assert "hush" not in repr(found)


def test_a_command_ends_with_a_line_for_each_wrong_setting(tmp_path: Path) -> None:
    done = manage(tmp_path / "data", "runs", **WRONG, **DJANGOS)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        *TOLD[:-3],
        "ondatra.E016 ONDATRA_UPKEEP is 'every night': off, cron text of five fields such as '0 3 * * *', or 'every "
        "12h' is expected",
        "ondatra.E017 ONDATRA_FAULT is 'somewhere': one of after_commit, before_mark, after_mark, after_answers, "
        "after_seal, after_files, before_finalize is expected",
        "ondatra.E018 DATABASE_URL is '***': postgres://USER:PASSWORD@HOST:5432/NAME or "
        "sqlite:///FILE?timeout=SECONDS is expected",
        "ondatra.E019 DJANGO_DEBUG is 'maybe': on or off is expected",
        "ondatra.E023 EMAIL_URL is '***': smtp+tls://USER:PASSWORD@HOST:587, smtp+ssl://…:465, smtp://HOST:25 or "
        "consolemail:// is expected",
        *TOLD[-3:-1],
        "ondatra.E026 EMAIL_FROM is 'ondatra': an address such as ondatra@example.com is expected",
        TOLD[-1],
    ]


def test_djangos_check_lists_them_with_their_hints(tmp_path: Path) -> None:
    done = manage(tmp_path / "data", "check", ONDATRA_UPKEEP="every night", ONDATRA_BUILDS="none")

    assert done.returncode == 1
    assert "?: (ondatra.E015) ONDATRA_BUILDS is 'none'\n\tHINT: a whole number from 1 on is expected" in done.stderr
    assert "?: (ondatra.E016) ONDATRA_UPKEEP is 'every night'\n\tHINT: off, cron text of five" in done.stderr


def test_what_an_install_keeps_is_its_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    (folder / "ondatra.sqlite3").touch(mode=0o644)

    assert manage(folder, "migrate", "--verbosity", "0").returncode == 0

    found = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (folder, folder / "ondatra.sqlite3")}
    assert found == {"data": 0o700, "ondatra.sqlite3": 0o600}


def test_a_damaged_database_is_one_line_with_the_way_out(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "ondatra.sqlite3").write_bytes(b"no database at all" * 100)

    done = manage(folder, "runs")

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"the database cannot be used: file is not a database. The file {folder}/ondatra.sqlite3 is damaged: put a "
        f"copy of it in its place, or move it away to begin anew. What was not sent stays due."
    ]
