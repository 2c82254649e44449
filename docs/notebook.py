# ruff: noqa: B018, E501 %% [markdown] # What did my syncs do?
#
# Questions about the files of Sync Tracking, with plain DuckDB on the folder or the bucket in which they lie. Nothing
# of the product is needed.
#
# python docs/notebook.py s3://your_bucket [ORG_ID SYNC_ID SYNC_RUN_ID]
#
# The cells run one after the other, here or in any editor that knows `# %%`. For S3 the standard AWS variables say who
# asks; `pip install duckdb pyarrow fsspec` is all that is needed. (With DuckDB's extension httpfs, `CREATE SECRET (TYPE
# s3, …)` does the same.)

# %%
from __future__ import annotations

import os
import sys

import duckdb

STORE = sys.argv[1].rstrip("/") if len(sys.argv) > 1 else "data/store"
ORG_ID, SYNC_ID, SYNC_RUN_ID = sys.argv[2:5] if len(sys.argv) > 4 else ("*", "*", "*")
con = duckdb.connect()
con.execute("SET TimeZone = 'UTC'")

# %% [markdown]
# Access to the bucket: DuckDB reads it through pyarrow.

# %%
if STORE.startswith("s3://"):
    from fsspec.implementations.arrow import ArrowFSWrapper
    from pyarrow.fs import S3FileSystem

    class Bucket(ArrowFSWrapper):
        protocol = "s3"

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    scheme, _, host = endpoint.rpartition("://")
    con.register_filesystem(
        Bucket(
            S3FileSystem(
                endpoint_override=host or None,
                scheme=scheme or "https",
                region=os.environ.get("AWS_REGION", "us-east-1"),
            )
        )
    )

RUN = f"{STORE}/sync_tracking_datasets/{ORG_ID}/{SYNC_ID}/{SYNC_RUN_ID}"
FACTS = f"{STORE}/metadata/{ORG_ID}"


def ask(title: str, sql: str) -> None:
    print(f"\n## {title}\n")
    con.sql(sql).show(max_width=160)


# %% [markdown]
# ## Which records failed, by error message?
#
# The question, word for word, that the files were made for.

# %%
ask(
    "Rejected records by error message",
    f"""
SELECT status_message, ARRAY_AGG(identifier) AS rejected_records
FROM read_parquet('{RUN}/*.parquet', union_by_name=True)
WHERE status = 'rejected'
GROUP BY 1
""",
)

# %% [markdown] ## How did each record end?
#
# `NULL` and `DUPLICATE` are checks before anything is sent: the key is missing, or stands more than once in the source.
# `NULL` is a text.

# %%
ask(
    "Records by status and operation",
    f"""
SELECT operation, status, count(*) AS records, min(batch_started_at) AS first_sent, max(batch_ended_at) AS last_sent
FROM read_parquet('{RUN}/*.parquet', union_by_name=True)
GROUP BY ALL ORDER BY ALL
""",
)

# %% [markdown]
# ## What was the source row of a record that failed?
#
# `record_payload` is JSON; `metadata.json` says of which type each field is.

# %%
ask(
    "Payloads of rejected records",
    f"""
SELECT identifier, status_message, record_payload
FROM read_parquet('{RUN}/*.parquet', union_by_name=True)
WHERE status = 'rejected' ORDER BY identifier LIMIT 20
""",
)
ask(
    "Fields and their types",
    f"""
SELECT DISTINCT sync_name, unnest(map_keys(fields)) AS field, unnest(map_values(fields)) AS type
FROM (SELECT sync_name, CAST(record_payload_schema AS MAP(VARCHAR, VARCHAR)) AS fields FROM read_json('{RUN}/metadata.json', columns = {{sync_name: 'VARCHAR', record_payload_schema: 'JSON'}}))
ORDER BY ALL
""",
)

# %% [markdown]
# ## Which invalid rows does the source have?

# %%
ask(
    "Invalid rows",
    f"""
SELECT status, identifier, status_message, count(*) AS rows
FROM read_parquet('{RUN}/*.parquet', union_by_name=True)
WHERE status IN ('NULL', 'DUPLICATE') GROUP BY ALL ORDER BY ALL
""",
)

# %% [markdown]
# ## What happened to one record over all runs?

# %%
ask(
    "History of the record that was rejected most often",
    f"""
WITH records AS (FROM read_parquet('{STORE}/sync_tracking_datasets/{ORG_ID}/{SYNC_ID}/*/*.parquet', union_by_name=True)),
     worst AS (SELECT identifier FROM records WHERE status = 'rejected' GROUP BY 1 ORDER BY count(*) DESC, identifier LIMIT 1)
SELECT identifier, sync_run_id, operation, status, status_message, batch_ended_at
FROM records SEMI JOIN worst USING (identifier) ORDER BY batch_ended_at
""",
)

# %% [markdown]
# ## What came from where, and where did it go?
#
# `metadata.json` names the ids by which the fact tables are joined.

# %%
ask(
    "Records by source and destination object",
    f"""
SELECT s.name AS source, d.name AS destination, o.name AS object, r.status, count(*) AS records
FROM read_parquet('{RUN}/*.parquet', union_by_name=True) r
JOIN read_json('{RUN}/metadata.json') m ON m.sync_run_id::VARCHAR = r.sync_run_id
JOIN read_parquet('{FACTS}/source_objects.parquet') s ON s.id = m.source_object_id
JOIN read_parquet('{FACTS}/destinations.parquet') d ON d.id = m.destination_id
JOIN read_parquet('{FACTS}/destination_objects.parquet') o ON o.id = m.destination_object_id
GROUP BY ALL ORDER BY ALL
""",
)
