"""One query, clause by clause: SELECT, FROM, WHERE, set operations, CTEs.

query       `Queries`: the parse tree of one in, Spark text with its columns out
shadowing   a CTE of a name that one around it has
modifiers   DISTINCT, ORDER BY and LIMIT
setops      UNION, EXCEPT and INTERSECT
recursion   WITH RECURSIVE
repeated    CTEs that would be computed often
source      FROM: tables, subqueries, joins, VALUES
made        FROM: range(), generate_series(), unnest(), json_each() and json_tree()
matching    joins whose condition DuckDB computes over both sides
nested      joins that are the right of another
positional  POSITIONAL JOIN
asof        ASOF JOIN
samples     USING SAMPLE
pivot       PIVOT and UNPIVOT
lent        columns of the query around, where Spark knows none
item        one item of FROM: text, names, columns renamed
around      a SELECT in two, where a subquery in it needs its groups or names
conditions  WHERE and ON, parted between Spark and DuckDB
stars       * and COLUMNS()
rows        the name of a table as a value
aliases     names of the select list
rolled      ROLLUP, CUBE and GROUPING SETS over no rows
unnest      unnest() in a select list
clauses     the clauses as Spark text
"""
