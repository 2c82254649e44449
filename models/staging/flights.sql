-- @description: Departures from New York City, one file a day; `.venv/bin/python manage.py demo next` adds a day.
SELECT CAST(make_date(year, month, day) AS DATE) AS day, carrier, flight, tailnum, origin, dest, dep_delay, distance
FROM read_csv('data/demo/flights/*.csv', header = true, columns = {
    'year': 'INTEGER', 'month': 'INTEGER', 'day': 'INTEGER', 'carrier': 'VARCHAR', 'flight': 'INTEGER', 'tailnum': 'VARCHAR',
    'origin': 'VARCHAR', 'dest': 'VARCHAR', 'dep_delay': 'INTEGER', 'distance': 'INTEGER'})
