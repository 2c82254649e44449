"""The way of a row, room by room. Nothing in here knows of Django; the web half (`ondatra_web`) imports this one.

project    the folder of SQL models and push functions, read and checked: what would go wrong is said with file and line
sources    what models read from outside the lake: files, tables of connections, and the columns of both
sql        DuckDB's SQL as Spark's, with the gate that keeps a model inside its folder
pipeline   the walk: which models may have changed, which are built side by side, what of them is staged
kinds      one file a kind: finds what changed and makes one commit of it; `sieve/` is the quick way for large merges
lake       Delta tables, row hashes, sizes, notes beside a table, the JVM and its private parts
staging    the change feed since the last run becomes chunk files, in delivery order, each row with its state
delivery   a chunk is claimed, cut into calls, sent, answered, tried again and closed
push       the push function: the API dict, Starlark, its built-ins, the statuses that it gave; `http/` sends
tracking   what is kept of every row that was sent: record files, requests, message groups, fact tables, sync_log
store      where record files lie: a folder or a bucket
records    the questions about them: filter, page, count, export, history
custody    what must not be seen: secrets, redaction, masks

Under all of them: `model` (a SQL model and its directives), `columns` (the names of the columns that the engine adds),
`errors` (what went wrong, and the way out), `config` (the settings, read once), `machine` (its cores and memory),
`spark_settings` (whose settings of Spark count), `threads` (work that can be given up), `faults` (where tests kill the
process).
"""
