-- @description: One object for each aircraft: created once, patched when it has flown.
-- @kind: merge
-- @unique_key: tailnum
-- @sink: assets
SELECT tailnum, year, manufacturer, model, engines, seats, flights, miles, last_flight
FROM mart.aircraft
