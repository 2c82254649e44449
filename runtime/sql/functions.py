"""The scalar functions that DuckDB may not compute for a model, and those whose answer is Spark's: all others are
DuckDB's."""

from __future__ import annotations

from .casts import E
from .types import Type

#: Functions that tell of the session, the moment, the machine or DuckDB itself, or of what its next version may change.
REFUSED = {
    "ago",
    "alias",
    "combine",
    "create_sort_key",
    "current_catalog",
    "current_connection_id",
    "current_database",
    "current_localtime",
    "current_query",
    "current_query_id",
    "current_role",
    "current_schema",
    "current_schemas",
    "current_setting",
    "current_time",
    "current_transaction_id",
    "current_user",
    "currval",
    "finalize",
    "generate_subscripts",
    "get_block_size",
    "get_current_time",
    "getvariable",
    "hash",
    "in_search_path",
    "index_key",
    "invoke",
    "json_deserialize_sql",
    "json_serialize_plan",
    "json_serialize_sql",
    "nextval",
    "parse_duckdb_log_message",
    "pg_typeof",
    "regexp_split_to_table",
    "session_user",
    "setseed",
    "setval",
    "sleep_ms",
    "stats",
    "to_aggregate_state",
    "txid_current",
    "unnest",
    "unlist",
    "user",
    "uuidv7",
    "vector_type",
    "version",
    "write_log",
}
#: What has another value at each call or in each run: Spark's, with its type.
MOMENTS = {
    **dict.fromkeys(
        ("now", "get_current_timestamp", "transaction_timestamp", "current_timestamp"),
        ("current_timestamp()", "TIMESTAMPTZ"),
    ),
    **dict.fromkeys(("today", "current_date"), ("current_date()", "DATE")),
    **dict.fromkeys(("localtimestamp", "current_localtimestamp"), ("localtimestamp()", "TIMESTAMP")),
}
DRAWN = {
    "random": ("rand()", "DOUBLE"),
    **dict.fromkeys(("uuid", "gen_random_uuid", "uuidv4"), ("uuid()", "UUID")),
}
VOLATILE = {*MOMENTS, *DRAWN}
#: What they make may grow with each element.
REDUCING = {"array_reduce", "list_reduce", "reduce"}
#: What is not computed while a model is checked: it has no constant answer, or makes much.
UNFOLDABLE = REFUSED | VOLATILE | REDUCING | {"age", "error", "getenv"}


def moment(name: str) -> E | None:
    """What Spark says of now, today and chance."""
    found = MOMENTS.get(name) or DRAWN.get(name)
    return E(found[0], Type(found[1])) if found else None
