-- @description: The register of aircraft; years and makers are as people wrote them.
SELECT tailnum, year, trim(manufacturer) AS manufacturer, model, engines, seats
FROM read_csv('data/demo/planes.csv', header = true, columns = {
    'tailnum': 'VARCHAR', 'year': 'INTEGER', 'type': 'VARCHAR', 'manufacturer': 'VARCHAR', 'model': 'VARCHAR',
    'engines': 'INTEGER', 'seats': 'INTEGER', 'speed': 'INTEGER', 'engine': 'VARCHAR'})
