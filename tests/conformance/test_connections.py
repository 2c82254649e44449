"""Tables of a real PostgreSQL and folders of a real S3 server as sources: `connection.schema.table` of ondatra.toml, secrets by environment only."""
import boto3
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from services import BUCKET, postgres

PASSWORD = "pg-Zx81-only-here"
TOML = """
[connections.shop]
type = "jdbc"
url = "jdbc:postgresql://{host}/postgres"
user = "app"
password = {{ env = "SHOP_PASSWORD" }}
properties = {{ ApplicationName = "ondatra" }}
"""
MODEL = """
    -- @kind: merge
    -- @unique_key: id
    -- @on_missing: delete
    -- @sink: echo
    SELECT id, upper(name) AS name, born, "at", seen, paid, ok, tag, doc
    FROM shop.crm.people
    WHERE name > 'B'
    """


@pytest.fixture(scope="module")
def shop():
    with postgres() as url, psycopg.connect(url, autocommit=True) as con:
        con.execute(f"ALTER USER app PASSWORD '{PASSWORD}'")
        con.execute("CREATE SCHEMA crm")
        con.execute("CREATE TABLE crm.people (id bigint, name text, born date, at timestamp, seen timestamptz, paid numeric(10, 2), ok boolean, tag uuid, doc jsonb)")
        con.execute("INSERT INTO crm.people VALUES (1, 'Ada', NULL, NULL, NULL, 1, true, NULL, NULL), (2, 'bob', '2026-01-15', '2026-01-15 08:09:10',"
                    " '2026-01-15 08:09:10+02', 12.30, false, '00000000-0000-0000-0000-000000000001', '{\"a\": 1}'), (3, 'Zoë', NULL, NULL, NULL, NULL, NULL, NULL, NULL)")
        yield con, url.split("@")[1].split("/")[0]


def begin(case, shop):
    case.echo()
    case.setenv("SHOP_PASSWORD", PASSWORD)
    case.write("ondatra.toml", TOML.format(host=shop[1]))
    case.model("sync/people", MODEL)


def test_only_what_changed_over_there_is_sent(case, shop):
    begin(case, shop)
    first = case.run()
    assert first.exit == 0, first
    two, three = case.sent()
    assert {k: v for k, v in two.items() if not k.startswith("__")} == {
        "id": 2, "name": "BOB", "born": "2026-01-15", "at": "2026-01-15T08:09:10", "seen": "2026-01-15T06:09:10Z", "paid": 12.3, "ok": False,
        "tag": "00000000-0000-0000-0000-000000000001", "doc": '{"a": 1}'}
    assert (three["name"], three["paid"]) == ("ZOË", None)
    assert case.run().exit == 0 and case.sent() == []
    shop[0].execute("UPDATE crm.people SET paid = 13 WHERE id = 2")
    shop[0].execute("DELETE FROM crm.people WHERE id = 3")
    assert case.run().exit == 0
    assert case.changes("id", "paid") == [("delete", 3, None), ("update_preimage", 2, 12.3), ("update_postimage", 2, 13.0)]
    assert PASSWORD not in first.text + str(case.metadata("sync.people"))


def test_a_table_that_several_models_read_is_asked_for_once_a_run_and_they_see_the_same_rows(case, shop):
    begin(case, shop)
    case.delete("models/sync/people.sql")
    shop[0].execute("CREATE SEQUENCE crm.ticks")
    shop[0].execute("CREATE VIEW crm.moments AS SELECT id, nextval('crm.ticks') AS tick FROM generate_series(1, 3) AS id")
    case.model("mart/first", "-- @dialect: spark\nSELECT * FROM shop.crm.moments")
    case.model("sync/same", "-- @sink: echo\nSELECT m.id, m.tick = f.tick AS same FROM shop.crm.moments AS m JOIN mart.first AS f ON f.id = m.id")
    before = set(case.engine.data.glob("staging/sources/**/*.parquet"))
    assert case.run().exit == 0 and sorted(case.changes("id", "same")) == [("insert", id, True) for id in (1, 2, 3)]
    assert shop[0].execute("SELECT last_value FROM crm.ticks").fetchone() == (3,)
    assert set(case.engine.data.glob("staging/sources/**/*.parquet")) == before


def test_sparks_dialect_reads_it_too_and_what_reads_that_is_checked(case, shop):
    begin(case, shop)
    case.delete("models/sync/people.sql")
    case.model("mart/people", "-- @dialect: spark\nSELECT p.id, p.name FROM shop.crm.people p WHERE p.id = 1")
    case.model("sync/names", "-- @sink: echo\nSELECT name FROM mart.people")
    assert case.check().exit == 0
    assert case.run().exit == 0 and case.changes("name") == [("insert", "Ada")]


def test_whatever_is_wrong_over_there_names_the_line_and_never_the_password(case, shop):
    begin(case, shop)
    case.model("mart/gone", "SELECT id\nFROM shop.crm.poeple")
    case.model("mart/other", "SELECT id FROM store.crm.people")
    assert "no connection store; there are: shop" in case.check().problem("models/mart/other.sql", 1)
    case.delete("models/mart/other.sql")
    assert case.check().exit == 0                                   # nothing was asked
    ran = case.run()
    assert ran.exit == 2 and 'relation "crm.poeple" does not exist' in ran.problem("models/mart/gone.sql", 2)
    case.delete("models/mart/gone.sql")
    case.setenv("SHOP_PASSWORD", "wrong-password-77")
    ran = case.run()
    assert ran.exit == 2 and "password authentication failed" in ran.problem("models/sync/people.sql", 6) and "wrong-password-77" not in ran.text
    case.write("ondatra.toml", TOML.format(host="127.0.0.1:1"))
    assert "127.0.0.1:1 refused" in case.run().problem("models/sync/people.sql", 6)
    case.setenv("SHOP_PASSWORD", None)
    assert "needs SHOP_PASSWORD: set it in the environment" in case.check().problem("models/sync/people.sql", 6)
    assert not case.dest.calls


def put(s3, key, **columns):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    client = boto3.client("s3", endpoint_url=s3.endpoint, aws_access_key_id="devkey", aws_secret_access_key="devsecret123", region_name="us-east-1")
    client.put_object(Bucket=BUCKET, Key=key, Body=sink.getvalue().to_pybytes())


def test_folders_of_an_object_store_are_tables_too_each_connection_with_its_own_keys(case, s3):
    case.echo()
    lines = [f'[connections.{name}]\ntype = "s3"\nurl = "s3://{BUCKET}/export"\nendpoint = "{s3.endpoint}"\n'
             f'access_key = {{ env = "{name.upper()}_KEY" }}\nsecret_key = {{ env = "{name.upper()}_SECRET" }}\n' for name in ("events", "other")]
    case.write("ondatra.toml", "".join(lines))
    for name, value in {"EVENTS_KEY": "devkey", "EVENTS_SECRET": "devsecret123", "OTHER_KEY": "devkey", "OTHER_SECRET": "wrong-secret-55"}.items():
        case.setenv(name, value)
    put(s3, "export/web/clicks/a.parquet", id=[1, 2], page=["/", "/ü"])
    case.model("sync/clicks", "-- @kind: merge\n-- @unique_key: id\n-- @sink: echo\nSELECT id, page FROM events.web.clicks")
    first = case.run()
    assert first.exit == 0 and sorted(case.changes("id", "page")) == [("insert", 1, "/"), ("insert", 2, "/ü")], first
    put(s3, "export/web/clicks/b.parquet", id=[3], page=["/new"])
    assert case.run().exit == 0 and case.changes("id", "page") == [("insert", 3, "/new")]
    case.model("mart/gone", "SELECT id\nFROM events.web.clocks")
    case.model("mart/theirs", "SELECT id\nFROM other.web.clicks")
    ran = case.run()
    assert ran.exit == 2 and "clocks" in ran.problem("models/mart/gone.sql", 2) and "wrong-secret-55" not in ran.text
    assert "events" not in ran.problem("models/mart/theirs.sql", 2)     # its own key was tried, not that of the other connection to this bucket


def test_tables_of_a_catalog_that_the_install_allows(case, shop):
    catalog = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
    case.echo()
    case.setenv("PG_PASSWORD", PASSWORD)
    case.write("ondatra.toml", f"""
        [connections.pg]
        type = "catalog"
        class = "{catalog}"
        [connections.pg.options]
        url = "jdbc:postgresql://{shop[1]}/postgres"
        driver = "org.postgresql.Driver"
        user = "app"
        password = {{ env = "PG_PASSWORD" }}
        pushDownPredicate = false
        """)
    shop[0].execute("CREATE TABLE crm.teams AS SELECT 1 AS id, 'Red' AS name UNION ALL SELECT 2, 'blue'")
    case.model("sync/teams", "-- @kind: merge\n-- @unique_key: id\n-- @sink: echo\nSELECT id, lower(name) AS name\nFROM pg.crm.teams WHERE name > 'R'")
    assert "ONDATRA_CATALOG_CLASSES (none)" in case.check().problem("ondatra.toml", 3)
    case.setenv("ONDATRA_CATALOG_CLASSES", catalog)
    first = case.run()
    assert first.exit == 0 and sorted(case.changes("id", "name")) == [("insert", 1, "red"), ("insert", 2, "blue")], first
    shop[0].execute("UPDATE crm.teams SET name = 'Rot' WHERE id = 1")
    assert case.run().exit == 0 and case.changes("id", "name") == [("update_preimage", 1, "red"), ("update_postimage", 1, "rot")]
    shop[0].execute("DROP TABLE crm.teams")
    gone = case.run()
    assert gone.exit == 2 and "crm" in (said := gone.problem("models/sync/teams.sql", 5)) and "teams" in said and PASSWORD not in gone.text
