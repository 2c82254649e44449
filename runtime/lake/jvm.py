"""The JVM of a local Spark, started at once and over classes that lie ready: `python -m runtime.lake.jvm FOLDER`.

Spark's own start asks a JVM how to start the JVM, which then takes some 20,000 classes out of 280 jars. Both are
the same each time, so what fetches the jars (`runtime.lake.jars`) also asks once, and lays the classes of
`classes.txt.gz` out in an archive that the JVM maps (AppCDS). Nothing depends on either: where they are missing or of
another Java, Spark starts as it does by itself, and a JVM that finds its archive to be of other jars does without it.

`make` also sees, once for all installs with these jars, which private parts of both work (`runtime.lake.proof`).

The list is made by `JDK_JAVA_OPTIONS=-XX:DumpLoadedClassList=FILE` around runs of the demo and of bench/project.py.
"""

from __future__ import annotations

import gzip
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runtime.lake.packages import artifact

#: Both stand beside the jars, in a folder that Spark does not load.
FOLDER, OPTIONS, ARCHIVE = "jvm", "options.json", "classes.jsa"
LIST = Path(__file__).with_name("classes.txt.gz")
MAIN = "org.apache.spark.deploy.SparkSubmit"
#: Of a JVM that lives for little work: each method is compiled once and quickly. A long build would take longer so. For
#: one compiler Java reserves less room for code, which Spark fills.
BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=256m")
#: What a JVM says of an archive that does not fit.
SILENT = ("-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr")


@dataclass(frozen=True)
class Start:
    """How the JVM is started: everything before the class, which takes Spark's own arguments."""

    before: tuple[str, ...]

    def command(self, arguments: Sequence[str], options: Sequence[str]) -> list[str]:
        """`options` are the JVM's own; those of SPARK_SUBMIT_OPTS stand after them, as Spark's scripts have it."""
        more = shlex.split(os.environ.get("SPARK_SUBMIT_OPTS", ""))
        return [*self.before, *options, *more, MAIN, *arguments]

    @property
    def environment(self) -> dict[str, str]:
        return _environment()


def start(folder: Path, jars: Sequence[Path]) -> Start | None:
    """None where it is not known how, or somebody has settings for Spark's own scripts."""
    if os.environ.keys() & {"SPARK_HOME", "SPARK_CONF_DIR"} or (_home() / "conf").exists():
        return None

    options = _known(folder)
    if options is None:
        return None

    archive = folder / FOLDER / ARCHIVE
    shared = (f"-XX:SharedArchiveFile={archive}", *SILENT) if archive.exists() else ()
    return Start((_java(), "-cp", _class_path(jars), *options, *shared))


def is_made(folder: Path) -> bool:
    """Whether it is known how, for this Spark and these jars."""
    return _known(folder) is not None


def make(folder: Path) -> None:
    """Both, for the jars of the folder; where one cannot be made, Spark starts the slower way."""
    jars, place = sorted(folder.glob("*.jar")), folder / FOLDER
    with suppress(OSError, subprocess.CalledProcessError, StopIteration, ValueError):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        options = _options()
        known = {"spark": _spark(), "jars": [jar.name for jar in jars], "options": options}
        (place / OPTIONS).write_text(json.dumps(known), encoding="utf-8")
        _archive(place, jars, options)
        _prove(folder)


def make_beside(folder: Path) -> None:
    """The same in a process of its own that outlives this one and takes only what others leave of the processors."""
    command = ["nice", "-n", "19", sys.executable, "-m", "runtime.lake.jvm", str(folder)]
    with suppress(OSError):
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=_with_path(),
        )


def _archive(place: Path, jars: Sequence[Path], options: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        names, archive = Path(scratch) / "classes.txt", Path(scratch) / ARCHIVE
        names.write_bytes(gzip.decompress(LIST.read_bytes()))
        sharing = ["-Xshare:dump", f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={archive}"]
        _quiet(_java(), "-cp", _class_path(jars), *options, *sharing, *SILENT[1:])
        archive.replace(place / ARCHIVE)


def _prove(folder: Path) -> None:
    """So that no build has to (`runtime.lake.proof`)."""
    with tempfile.TemporaryDirectory() as scratch:
        told = {**_with_path(), "ONDATRA_JARS_DIR": str(folder), "ONDATRA_DATA_DIR": scratch}
        subprocess.run([sys.executable, "-m", "runtime.lake.proof"], check=True, env=told, capture_output=True)


def _known(folder: Path) -> list[str] | None:
    """The JVM's options."""
    try:
        known = json.loads((folder / FOLDER / OPTIONS).read_text(encoding="utf-8"))
        same = (known["spark"], known["jars"]) == (_spark(), sorted(jar.name for jar in folder.glob("*.jar")))
        return [str(option) for option in known["options"]] if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _options() -> list[str]:
    """What Spark's launcher starts the JVM with, but for the class path, its memory, and a module for linear algebra,
    of which Java warns at each start."""
    launcher = "org.apache.spark.launcher.Main"
    told = _quiet(_java(), "-cp", f"{_home()}/jars/*", launcher, MAIN, "pyspark-shell")
    words = told.split("\0")
    command = words[next(i for i, word in enumerate(words) if word.endswith("java")) :]
    options = command[command.index("-cp") + 2 : command.index(MAIN)]
    return [option for option in options if not option.startswith(("-Xmx", "--add-modules=jdk.incubator"))]


def _class_path(jars: Sequence[Path]) -> str:
    """Spark's jars before ours; of what both have, Spark's alone."""
    shipped = sorted((_home() / "jars").glob("*.jar"))
    known = {artifact(jar.name) for jar in shipped}
    ours = [jar for jar in sorted(jars) if artifact(jar.name) not in known]
    return os.pathsep.join(map(str, [*shipped, *ours]))


def _environment() -> dict[str, str]:
    """What Spark's scripts would set."""
    return {"SPARK_HOME": str(_home()), "SPARK_SCALA_VERSION": "2.13", "PYTHONHASHSEED": "0"}


def _home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def _spark() -> str:
    import pyspark

    return str(pyspark.__version__)


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def _with_path() -> dict[str, str]:
    """The environment of a process of ours."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _quiet(*command: str) -> str:
    environment = {**os.environ, **_environment()}
    return subprocess.run(
        command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    ).stdout


if __name__ == "__main__":
    make(Path(sys.argv[-1]))
