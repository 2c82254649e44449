-- @description: Every customer, sent when new and again when a column below changes.
-- @kind: merge
-- @unique_key: id
-- @on_missing: delete
-- @sink: log
SELECT id, name, email, country
FROM staging.customers
