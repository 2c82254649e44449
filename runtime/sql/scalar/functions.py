"""The scalar functions that DuckDB may not compute for a model, and those whose answer is Spark's: all others are
DuckDB's."""

from __future__ import annotations

from runtime.sql.asking.tree import Node
from runtime.sql.asking.types import Type

from .casts import E

#: Functions that tell of the session, the machine or DuckDB itself, or change it.
REFUSED = {
    "alias",
    "combine",
    "current_connection_id",
    "current_query",
    "current_query_id",
    "current_setting",
    "current_transaction_id",
    "currval",
    "finalize",
    "get_block_size",
    "getvariable",
    "index_key",
    "invoke",
    "json_serialize_plan",
    "nextval",
    "setseed",
    "setval",
    "sleep_ms",
    "stats",
    "to_aggregate_state",
    "txid_current",
    "unnest",
    "unlist",
    "vector_type",
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
#: The last of these are written with the others, see respelt.
VOLATILE = {*MOMENTS, *DRAWN, "ago", "current_localtime", "current_time", "get_current_time", "uuidv7"}
#: What they make may grow with each element.
REDUCING = {"array_reduce", "list_reduce", "reduce"}
#: What is not computed while a model is checked: it has no constant answer, or makes much.
UNFOLDABLE = REFUSED | VOLATILE | REDUCING | {"age", "error", "getenv"}


def is_drawn(node: Node) -> bool:
    return node["class"] == "FUNCTION" and node["function_name"] in DRAWN


def moment(name: str) -> E | None:
    """What Spark says of now, today and chance."""
    found = MOMENTS.get(name) or DRAWN.get(name)
    return E(found[0], Type(found[1])) if found else None
