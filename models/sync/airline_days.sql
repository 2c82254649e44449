-- @description: One report for each airline and day, with a line for each airport.
-- @kind: tracked
-- @group_key: report
-- @sink: day_reports
SELECT report, airline, day, origin, flights, delayed, miles
FROM mart.airline_days
