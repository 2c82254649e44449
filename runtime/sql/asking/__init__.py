"""What DuckDB is asked, and what it says: parse tree, names and types. It never sees a row here.

bounds    what a text may ask of the check, told before DuckDB hears of it
confined  a DuckDB that opens the files it is given, and nothing else
watch     the limit of time for a question
gate      the one DuckDB of a process: parser, binder, evaluator of constants
bounded   its answers, so many of them
bunches   questions about several queries at once
said      its messages, for people
tree      its parse tree, and where parts of it stand in the text
keys      the parts of the tree that are known; others are refused
types     its types as values, and the Spark type that holds each
scope     what a name means in a query, and the type of any expression
"""
