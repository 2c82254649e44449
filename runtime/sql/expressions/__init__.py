"""One expression of a scope: who writes it, and what it is written as.

expr        `Expressions`: the parse tree of one in, Spark text with its type out
sameness    whether two expressions are the same
respelt     functions that are another expression of DuckDB's
among       IN (SELECT …), = ANY and the like
tableless   subqueries that read no table, within a row
correlated  subqueries over columns of the query around them
held        what DuckDB makes of those, kept in its place
"""
