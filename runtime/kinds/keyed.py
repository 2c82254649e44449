"""The join of (key, content) of the source against the table's, for kinds with one current row a key."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.kinds.base import STATUS, Work, digest, observed
from runtime.lake import H1, H2, KEY, ROWID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: A change set of more keys than this is joined by shuffling instead of being sent to every executor.
BROADCAST = 1_000_000


@dataclass(frozen=True)
class Compared:
    """The keys that are not the same on both sides. `__op`: insert, update, gone, invalid."""

    keys: DataFrame
    source: int
    invalid: int
    invalid_digest: str
    inserts: int
    updates: int
    gone: int
    target: int

    @property
    def unchanged(self) -> int:
        return self.source - self.invalid - self.inserts - self.updates


def compare(work: Work, target: DataFrame) -> Compared:
    """One pass over the narrow columns of both sides; NULL and duplicate keys are found in the same pass."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    seen, known = Observation(), Observation()
    keys = (work.source.groupBy(KEY).agg(F.count(F.lit(1)).alias("n"), F.min(H1).alias("a"), F.min(H2).alias("b"),
                                         F.expr(f"sum(CAST({H1} AS DECIMAL(38,0)))").alias("s1"), F.expr(f"bit_xor({H2})").alias("s2"))
            .observe(seen, F.sum("n").alias("source")))
    have = target.select(F.col(KEY).alias("tkey"), F.col(H1).alias("ta"), F.col(H2).alias("tb"), ROWID).observe(known, F.count(F.lit(1)).alias("target"))
    same = "false" if work.rewrite else "a = ta AND b = tb"
    joined = keys.join(have, F.expr(f"{KEY} = tkey"), "full_outer").selectExpr(
        f"coalesce({KEY}, tkey) AS {KEY}", ROWID, "n", "s1", "s2",
        f"CASE WHEN n IS NULL THEN 'gone' WHEN {KEY} IS NULL OR n > 1 THEN 'invalid' WHEN {ROWID} IS NULL THEN 'insert' WHEN {same} THEN 'same' "
        "ELSE 'update' END AS __op")
    changed = work.persist(joined.filter("__op <> 'same'"))
    found = {r["__op"]: r for r in changed.groupBy("__op").agg(
        F.count(F.lit(1)).alias("c"), F.sum("n").alias("n"), F.sum("s1").alias("s1"), F.expr("bit_xor(s2)").alias("s2")).collect()}
    bad = found.get("invalid")

    def count(op: str) -> int:
        return int(found[op]["c"]) if op in found else 0

    return Compared(changed, observed(seen, "source"), int(bad["n"]) if bad else 0, digest(int(bad["n"]), bad["s1"], bad["s2"]) if bad else "",
                    count("insert"), count("update"), count("gone"), observed(known, "target"))


def invalid_rows(work: Work, keys: DataFrame) -> DataFrame:
    """The rows of the source whose key is NULL or occurs more than once."""
    from pyspark.sql import functions as F

    twice = keys.filter(f"__op = 'invalid' AND {KEY} IS NOT NULL").select(F.col(KEY).alias("bad"))
    rows = work.source.join(F.broadcast(twice), F.expr(f"{KEY} = bad"), "left").filter(f"{KEY} IS NULL OR bad IS NOT NULL")
    return rows.selectExpr(*[f"`{n.replace('`', '``')}`" for n in work.names], KEY,
                           f"CASE WHEN {KEY} IS NULL THEN 'NULL' ELSE 'DUPLICATE' END AS {STATUS}").orderBy(KEY)


def wide(work: Work, keys: DataFrame, ops: str, count: int) -> DataFrame:
    """The source's whole rows for these keys, with their row id and `__op`."""
    from pyspark.sql import functions as F

    picked = keys.filter(f"__op IN ({ops})").select(F.col(KEY).alias("__key"), ROWID, "__op")
    return work.source.join(F.broadcast(picked) if count <= BROADCAST else picked, F.expr(f"{KEY} = __key")).drop("__key")
