"""DuckDB's functions, family by family; nothing that is not listed here is translated."""
