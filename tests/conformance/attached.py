"""Our own: `manage.py` in a process of its own that uses the Spark of the tests. Usage: attached.py PORT SECRET COMMAND ARGUMENT…

The process is real, and so is its death; a Java machine for it alone would cost each such test 20 seconds of both cores.
"""
import os
import sys
from pathlib import Path


def attach(port, secret):
    """The context behind that gateway becomes this process's own: `runtime.lake.spark.session` finds it as if it had made it."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    os.environ.update(PYSPARK_GATEWAY_PORT=port, PYSPARK_GATEWAY_SECRET=secret)
    gateway = launch_gateway()                  # with these two it connects and starts nothing
    del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
    session = gateway.jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession().get()
    context = gateway.jvm.JavaSparkContext(session.sparkContext())
    SparkSession(SparkContext(conf=SparkConf(_jconf=context.getConf()), gateway=gateway, jsc=context), session)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    attach(*sys.argv[1:3])
    sys.argv[1:3] = []
    from ondatra_web.command_line import manage

    manage()
