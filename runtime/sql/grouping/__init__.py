"""What is computed over several rows: groups, orders, aggregates, windows.

equality    what stands for a value where DuckDB finds others equal than Spark does
orders      ORDER BY
as_read     the order of rows where a query names none
aggregates  aggregates: Spark's, or DuckDB's over the list of a group
partitions  windows that Spark has not: DuckDB's over the list of a partition
windows     window functions and their frames
"""
