"""The files that a text reads: where they may lie, and how they are described. What reads their rows is `sources`.

table_functions  read_csv() and its like become names of tables
places           which paths a pattern stands for, and what is never among them
opened           files opened once, for the check of a path and its reading
delta            the files of a Delta table, by its log
uneven           CSV and JSON in which DuckDB sees no columns: told
"""
