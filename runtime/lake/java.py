"""The Java that Spark starts. Standard library only: set-up asks here before any package is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from runtime.errors import ConfigError

#: Spark 4.2 needs Java 17 or newer.
NEEDED = 17
#: Where systems put what PATH does not lead to.
JVMS = Path("/usr/lib/jvm")
WAY_OUT = "install it (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"


def find() -> int:
    """The number of the Java that Spark will start: of JAVA_HOME or else PATH, then of the system's, to which JAVA_HOME
    then leads. Raises ConfigError."""
    home = os.environ.get("JAVA_HOME")
    first = [Path(home, "bin", "java")] if home else [Path(j)] if (j := shutil.which("java")) else []
    tried = {}

    for java in [*first, *sorted(JVMS.glob("*/bin/java"))]:
        number = tried[java] = version(java)
        if number >= NEEDED:
            if java not in first:
                os.environ["JAVA_HOME"] = str(java.parent.parent)
            return number

    found = ", ".join(
        f"{java} is Java {number}" if number else f"{java} does not start" for java, number in tried.items()
    )
    raise ConfigError(f"Java {NEEDED} was not found{f' ({found})' if found else ''}: {WAY_OUT}")


def version(java: Path) -> int:
    """17 for Java 17.0.15; 0 where it does not run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return 0
    number = said.split('"')[1].split(".")[0] if '"' in said else ""
    return int(number) if number.isdigit() else 0
