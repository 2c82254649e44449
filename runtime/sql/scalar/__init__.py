"""What is computed within a row: Spark's own where its answer is DuckDB's for every value, else a call of DuckDB.

functions   the scalar functions that no model may have, and those that need the run
texts       literals in Spark SQL
casts       casts that lose nothing, and comparisons
constants   expressions of constants, computed by DuckDB at check time
ahead       many of these at once
collations  COLLATE as functions over the text
plain       which expressions are Spark's own
alike       which functions and casts are
forms       the list of them, each with Spark's text
arguments   what their arguments have to be
spellings   casts of texts that are spelt as their values are written
strftime    strftime() of a constant format
letters     upper() and lower()
regexps     functions of a regular expression
patterns    regular expressions that RE2 and Java read alike
rowwise     all others: DuckDB's text over inputs
calls       which of these go together in one call
"""
