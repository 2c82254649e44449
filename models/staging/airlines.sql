-- @description: Airlines by their two-letter code.
SELECT carrier, name AS airline
FROM read_csv('data/demo/airlines.csv', header = true, columns = {'carrier': 'VARCHAR', 'name': 'VARCHAR'})
