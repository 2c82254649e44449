"""Our own: what a process needs that only delivers."""
import os
import subprocess
import sys

from bench import chaos
from ondatra_web.models import Run, Workspace

#: A push worker's message, and whether Spark was as much as imported for it.
MESSAGE = """
import sys
import django
django.setup()
from ondatra_web.runs import relay
relay.push(int(sys.argv[1]))
print("pyspark" in sys.modules)
"""


def test_a_push_process_delivers_a_model_in_sparks_dialect_without_spark(case):
    case.csv("rows.csv", [{"id": n} for n in range(5)])
    case.model("staging/rows", "SELECT id FROM 'rows.csv'")
    case.model("sync/rows", """
        -- @kind: merge
        -- @unique_key: id
        -- @sink: echo
        -- @mask: name:last4
        -- @dialect: spark
        SELECT id, concat('name ', id) AS name, named_struct('n', id) AS nested FROM staging.rows
        """)
    case.echo()
    run_id = chaos.stage(Workspace.objects.get(slug=case.slug))
    case.model("sync/rows", "this is no SQL any more")

    done = subprocess.run([sys.executable, "-c", MESSAGE, str(run_id)], env={**os.environ, "JAVA_HOME": "/nowhere"},
                          capture_output=True, text=True, timeout=120)

    run = Run.objects.get(pk=run_id)
    assert (done.stdout, run.status, run.succeeded, run.error) == ("False\n", "completed", 5, ""), done.stderr
    assert [row["id"] for row in case.sent()] == list(range(5))
