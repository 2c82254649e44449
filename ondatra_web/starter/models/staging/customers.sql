-- @description: Customers as the shop exports them, tidied.
SELECT id, trim(name) AS name, lower(email) AS email, country, signed_up
FROM 'seeds/customers.csv'
