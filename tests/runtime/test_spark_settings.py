"""Every setting of Spark can be given; ours win only where a model would answer otherwise, and then it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime import config, spark_settings
from runtime.errors import ConfigError
from runtime.lake import effort

DEFAULTS = """# of the platform
spark.master                     spark://hub:7077
spark.executor.memory=6g
spark.executor.cores: 3
spark.sql.session.timeZone       Europe/Stockholm
spark.sql.legacy.timeParserPolicy LEGACY
spark.sql.shuffle.partitions 64
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "spark-defaults.conf").write_text(DEFAULTS)
    return tmp_path


def session_of(environment: dict[str, str]) -> dict[str, str]:
    found = config.from_env(environment)
    return spark_settings.of_session(found.spark_master, 4, found.spark, "10.0.0.7")


def test_the_file_of_the_platform_and_the_environment_count_and_the_latter_wins(folder: Path) -> None:
    told = session_of({"SPARK_CONF_DIR": str(folder), "ONDATRA_SPARK_executor_memory": "8g"})

    asked = ("spark.master", "spark.executor.memory", "spark.executor.cores", "spark.sql.shuffle.partitions")
    assert [told[name] for name in asked] == ["spark://hub:7077", "8g", "3", "64"]


def test_what_the_results_rest_on_stays_and_is_named(folder: Path) -> None:
    environment = {"SPARK_CONF_DIR": str(folder)}
    told, path = session_of(environment), folder / "spark-defaults.conf"

    assert told["spark.sql.session.timeZone"] == "UTC" and "spark.sql.legacy.timeParserPolicy" not in told
    assert [str(r) for r in config.read(environment).spark_refused] == [
        f"spark.sql.session.timeZone is 'Europe/Stockholm' in {path} and stays as it is: models need UTC",
        f"spark.sql.legacy.timeParserPolicy is 'LEGACY' in {path} and stays as it is: models need Spark's answers of "
        "today",
    ]


def test_one_of_the_environment_that_cannot_count_is_refused_before_anything_starts() -> None:
    with pytest.raises(ConfigError) as refused:
        config.from_env({"ONDATRA_SPARK_sql_ansi_enabled": "false", "ONDATRA_SPARK_EXECUTOR_MEMORY": "4g"})

    assert str(refused.value).splitlines() == [
        "ONDATRA_SPARK_EXECUTOR_MEMORY is '4g': Spark's names are case-sensitive: write them as Spark does, with _ for "
        "each dot",
        "ONDATRA_SPARK_sql_ansi_enabled is 'false': models need true",
    ]


def test_a_name_keeps_its_letters_and_two_underscores_are_one() -> None:
    told = session_of({"ONDATRA_SPARK_hadoop_fs_s3a_bucket_my__lake_endpoint": "x", "SPARK_MASTER": "local[2]"})

    assert told["spark.hadoop.fs.s3a.bucket.my_lake.endpoint"] == "x"


def test_the_driver_is_found_by_executors_elsewhere_and_by_nobody_where_there_are_none() -> None:
    names = ("spark.driver.host", "spark.driver.bindAddress")
    cluster, here = {"SPARK_MASTER": "spark://hub:7077"}, {"SPARK_MASTER": "local[4]"}
    given = {**cluster, "ONDATRA_SPARK_driver_host": "worker-1", "ONDATRA_SPARK_driver_bindAddress": "10.1.2.3"}

    assert [[session_of(e)[n] for n in names] for e in (here, cluster, given)] == [
        ["127.0.0.1", "127.0.0.1"],
        ["10.0.0.7", "10.0.0.7"],
        ["worker-1", "10.1.2.3"],
    ]


def test_extensions_that_are_given_stand_beside_deltas() -> None:
    told = session_of({"ONDATRA_SPARK_sql_extensions": "com.example.Rules"})

    assert told["spark.sql.extensions"] == f"{spark_settings.DELTA},com.example.Rules"


def test_partitions_follow_data_and_cores_unless_they_are_given() -> None:
    huge, unknown, terabyte = 1 << 33, 1 << 60, 1 << 40
    told = [effort.settings(size, 200)[spark_settings.PARTITIONS] for size in (huge, unknown, terabyte)]

    assert told == ["268", "400", "800"]
    assert effort.settings(huge, 200, "64")[spark_settings.PARTITIONS] == "64"
    assert effort.settings(1000, 200, "64")[spark_settings.PARTITIONS] == "1"


def test_what_a_person_gave_is_in_no_text_of_the_settings() -> None:
    told = config.read({"ONDATRA_SPARK_hadoop_fs_s3a_secret_key": "hush", "ONDATRA_SPARK_X_SECRET": "hush"})

    assert "hush" not in repr(told) and told.wrong[0].found == "***"
