"""How the JVM of a local Spark starts: at once where it is known how, else the way Spark starts it."""

from __future__ import annotations

import json
from pathlib import Path

import pyspark
import pytest

from runtime.lake import jvm

HOME = Path(pyspark.__file__).parent
JAR = "io.delta_delta-spark_4.2_2.13-4.4.0.jar"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Jars whose JVM is known."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Db=1")
    monkeypatch.setenv("JAVA_HOME", "/java")
    for name in (JAR, "commons-codec_commons-codec-1.17.1.jar"):
        (tmp_path / name).touch()
    known = {"spark": pyspark.__version__, "jars": sorted(j.name for j in tmp_path.glob("*.jar")), "options": ["-Xa"]}
    (tmp_path / "jvm").mkdir()
    (tmp_path / "jvm" / "options.json").write_text(json.dumps(known))
    return tmp_path


def command(folder: Path) -> list[str] | None:
    start = jvm.start(folder, sorted(folder.glob("*.jar")))
    return start.command(["--conf", "a=b", "pyspark-shell"], ["-Xmx1g"]) if start else None


def test_the_jvm_starts_without_sparks_scripts_and_takes_sparks_own_jar_where_both_have_one(folder: Path) -> None:
    said = command(folder)
    assert said is not None
    path = said[2].split(":")
    ours = [Path(jar).name for jar in path if not jar.startswith(str(HOME))]
    assert (said[:2], ours) == (["/java/bin/java", "-cp"], [JAR])
    assert said[3:] == [
        "-Xa",
        "-Xmx1g",
        "-Db=1",
        "org.apache.spark.deploy.SparkSubmit",
        "--conf",
        "a=b",
        "pyspark-shell",
    ]


def test_an_archive_of_classes_is_used_silently_where_it_is_there(folder: Path) -> None:
    (folder / "jvm" / "classes.jsa").touch()
    said = command(folder)
    assert said is not None and said[4:8] == [f"-XX:SharedArchiveFile={folder}/jvm/classes.jsa", *jvm.SILENT]


@pytest.mark.parametrize("why", ["another jar", "another Spark", "settings of Spark's scripts", "broken", "never made"])
def test_what_was_made_for_something_else_is_not_used(why: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = folder / "jvm" / "options.json"
    if why == "another jar":
        (folder / "com.mysql_mysql-connector-j-9.3.0.jar").touch()
    elif why == "another Spark":
        options.write_text(options.read_text().replace(pyspark.__version__, "4.1.0"))
    elif why == "settings of Spark's scripts":
        monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    elif why == "broken":
        options.write_text("{")
    else:
        options.unlink()
    assert command(folder) is None
