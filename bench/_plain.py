"""The two projects of bench/project.py as an analyst's script: plain PySpark over Delta, with Spark's own settings.

Usage: python bench/_plain.py database|files FOLDER. Writes its tables below FOLDER and prints the seconds of each
round: one now, and one more for each line that it reads.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any


def main(project: str, folder: Path) -> None:
    spark = session(folder)
    rounds = {"database": database, "files": files}[project]
    answer(rounds, spark, folder)
    for _ in sys.stdin:
        answer(rounds, spark, folder)


def answer(rounds: Any, spark: Any, folder: Path) -> None:
    began = time.perf_counter()
    rows = rounds(spark, folder)
    print(f"{time.perf_counter() - began} {rows}", flush=True)


def session(folder: Path) -> Any:
    from pyspark.sql import SparkSession

    jars = sorted(Path(os.environ["ONDATRA_JARS_DIR"]).glob("*.jar"))
    settings = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.memory": "1800m",
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[*]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def database(spark: Any, folder: Path) -> int:
    for name in ("customers", "orders"):
        read = spark.read.format("jdbc").option("url", os.environ["SHOP_JDBC"]).option("dbtable", f"public.{name}")
        reader = read.option("user", "app").option("password", os.environ["SHOP_PASSWORD"])
        reader.option("driver", "org.postgresql.Driver").load().createOrReplaceTempView(f"shop_{name}")

    overwrite(
        spark.sql(
            "SELECT id, lower(email) AS email, trim(name) AS name, city, get_json_object(prefs, '$.lang') AS lang "
            "FROM shop_customers"
        ),
        folder / "staging_customers",
    )
    overwrite(
        spark.sql("SELECT id, customer_id, total, placed_on FROM shop_orders WHERE status <> 'cancelled'"),
        folder / "staging_orders",
    )
    overwrite(
        spark.sql(
            f"SELECT c.id, c.email, c.name, c.city, c.lang, count(o.id) AS orders, coalesce(sum(o.total), 0) AS spent, "
            f"max(o.placed_on) AS last_order FROM {table(folder, 'staging_customers')} c LEFT JOIN "
            f"{table(folder, 'staging_orders')} o ON o.customer_id = c.id GROUP BY c.id, c.email, c.name, c.city, "
            "c.lang"
        ),
        folder / "mart_customers",
    )
    return merge(spark, folder, spark.sql(f"SELECT * FROM {table(folder, 'mart_customers')}"))


def files(spark: Any, folder: Path) -> int:
    for name in ("customers", "orders"):
        spark.read.parquet(str(folder.parent / f"{name}.parquet")).createOrReplaceTempView(name)
    overwrite(
        spark.sql(
            "SELECT c.id, c.name, c.city, count(o.id) AS orders, coalesce(sum(o.total), 0) AS spent "
            "FROM customers c LEFT JOIN orders o ON o.customer_id = c.id GROUP BY c.id, c.name, c.city"
        ),
        folder / "mart_sums",
    )
    overwrite(
        spark.sql(
            "SELECT customer_id, id AS order_id, status, placed_on FROM (SELECT *, row_number() OVER (PARTITION BY "
            "customer_id ORDER BY placed_on DESC, id DESC) AS place FROM orders) WHERE place = 1"
        ),
        folder / "mart_latest",
    )
    return merge(
        spark,
        folder,
        spark.sql(
            f"SELECT s.id, s.name, s.city, s.orders, s.spent, l.order_id, l.status, l.placed_on FROM "
            f"{table(folder, 'mart_sums')} s LEFT JOIN {table(folder, 'mart_latest')} l ON l.customer_id = s.id"
        ),
    )


def table(folder: Path, name: str) -> str:
    return f"delta.`{folder / name}`"


def overwrite(frame: Any, path: Path) -> None:
    frame.write.format("delta").mode("overwrite").save(str(path))


def merge(spark: Any, folder: Path, rows: Any) -> int:
    """Merges by id what changed, and reads the rows that the feed then has; their number."""
    from delta.tables import DeltaTable

    path = folder / "sync"
    if not DeltaTable.isDeltaTable(spark, str(path)):
        empty = rows.limit(0).write.format("delta").option("delta.enableChangeDataFeed", "true")
        empty.save(str(path))

    target = DeltaTable.forPath(spark, str(path))
    before = target.history(1).head()["version"]
    columns = [name for name in rows.columns if name != "id"]
    changed = " OR ".join(f"NOT (t.`{name}` <=> s.`{name}`)" for name in columns)
    step = target.alias("t").merge(rows.alias("s"), "t.id = s.id").whenMatchedUpdateAll(condition=changed)
    step.whenNotMatchedInsertAll().execute()

    if target.history(1).head()["version"] == before:
        return 0
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", before + 1)
    return feed.load(str(path)).filter("_change_type <> 'update_preimage'").toArrow().num_rows


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
