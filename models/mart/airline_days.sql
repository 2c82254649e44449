-- @description: One line for each airline, day and airport of departure.
SELECT f.carrier || ' ' || CAST(f.day AS VARCHAR) AS report, a.airline, f.day, f.origin,
       count(*) AS flights, count(*) FILTER (WHERE f.dep_delay > 15) AS delayed, sum(f.distance) AS miles
FROM staging.flights f
JOIN staging.airlines a ON a.carrier = f.carrier
GROUP BY f.carrier, a.airline, f.day, f.origin
