"""`check_models --deep`: Spark's own analyser is asked, too, about all models at once, without reading data."""


def deep(case):
    return case.engine.command("check_models", "--workspace", case.slug, "--json", "--deep")


def test_what_only_spark_knows_is_found_in_all_models_at_once_beside_warnings(case):
    case.echo()
    case.model("mart/people", "-- @dialect: spark\nSELECT 1 AS id, 'Ada' AS name")
    case.model("mart/column", "-- @dialect: spark\n\nSELECT id,\n  nmae\nFROM mart.people")
    case.model("mart/function", "-- @dialect: spark\nSELECT id,\n  nofunc(name) AS n\nFROM mart.people")
    case.model("mart/reader", "SELECT id,\n  nick\nFROM mart.people")
    case.model("sync/few", "-- @kind: append\n-- @sink: echo\nSELECT id FROM mart.people\nLIMIT 1")
    assert (case.check().exit, case.check().problems) == (0, [])
    found = deep(case)
    assert found.exit == 2 and [(p["file"], p["line"]) for p in found.problems] == [
        ("models/mart/column.sql", 4), ("models/mart/function.sql", 3), ("models/mart/reader.sql", 2)]
    assert "`nmae` cannot be resolved" in found.problem("models/mart/column.sql") and "nofunc" in found.problem("models/mart/function.sql")
    assert "nick" in found.problem("models/mart/reader.sql") and "SQLSTATE" not in str(found.problems) and "\n" not in found.problems[0]["message"]
    assert {(w["line"], w["message"].split(":")[0]) for w in found.json["warnings"]} == {(1, "append without @unique_key"), (4, "LIMIT without ORDER BY")}
    ran = case.run()
    assert ran.exit == 2 and ran.json["problems"] == found.problems and not case.dest.calls


def test_a_sound_project_passes_and_its_data_are_not_read(case):
    case.echo()
    case.parquet("data/a.parquet", [{"id": 1, "paid": 1.5}])
    case.model("mart/a", "SELECT id, paid, DATE '2026-01-15' AS d, [1, 2] AS l, TIME '08:09:10' AS t FROM 'data/a.parquet'")
    case.model("sync/a", "-- @sink: echo\nSELECT id, l[1] AS first, sum(paid) AS paid, max(t) AS t FROM mart.a GROUP BY ALL")
    text = case.engine.command("check_models", "--workspace", case.slug, "--deep")
    assert (text.exit, text.stdout.splitlines()[-1]) == (0, "2 model(s) are fine")
