-- @description: What each registered aircraft has flown so far.
SELECT p.tailnum, p.year, p.manufacturer, p.model, p.engines, p.seats,
       count(*) AS flights, sum(f.distance) AS miles, max(f.day) AS last_flight
FROM staging.planes p
JOIN staging.flights f ON f.tailnum = p.tailnum
GROUP BY p.tailnum, p.year, p.manufacturer, p.model, p.engines, p.seats
