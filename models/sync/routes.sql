-- @description: Flights and miles of each route, as a sheet that is replaced whole.
-- @kind: table
-- @sink: sheet
SELECT origin, dest, count(*) AS flights, sum(distance) AS miles
FROM staging.flights
GROUP BY origin, dest
