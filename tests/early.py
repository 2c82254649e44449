"""Loaded by `-p early`, before pytest-django loads the settings: tests get folders of their own, whatever the
environment says."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

OWN = (
    "DATABASE_URL",
    "REDIS_URL",
    "ONDATRA_PROJECT_DIR",
    "ONDATRA_LAKE_URL",
    "ONDATRA_STAGING_URL",
    "ONDATRA_TRACKING_URL",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
)

#: A test's data are few, so the JVM's second compiler and a parallel collector take more time than they give: two
#: fifths of all that tests take. With one compiler the JVM reserves 48 MB for compiled code, which Spark fills within
#: ten runs: from then on code would be thrown away and compiled anew for the rest of the session. Nobody looks at the
#: text of plans in Spark's own pages, nor does Scala's cache of class tags pay.
JVM = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:ReservedCodeCacheSize=256m",
    "-Xmn256m",
    "-Dspark.sql.ui.explainMode=simple",
    "-Dscala.reflect.classtag.cache.disable=true",
)

folder = tempfile.mkdtemp(prefix="ondatra-tests-")
atexit.register(shutil.rmtree, folder, ignore_errors=True)
for name in OWN:
    os.environ.pop(name, None)
os.environ["ONDATRA_DATA_DIR"] = folder
# Playwright's event loop runs in the thread of the tests; their own queries are not asynchronous.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(JVM))
