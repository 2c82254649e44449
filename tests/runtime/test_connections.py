"""ondatra.toml: each thing that is wrong, at its line; nothing that could be a secret is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.custody import secrets
from runtime.custody.secrets import Secrets
from runtime.errors import BuildError
from runtime.sources import connections
from runtime.sources.columns import check_names

SET = Secrets({"KEY": "k-123456", "PW": "p-123456"}, "the environment")
JDBC = '[connections.shop]\ntype = "jdbc"\nurl = "jdbc:postgresql://db:5432/shop"\npassword = { env = "PW" }\n'
CATALOG = (
    '[connections.cat]\ntype = "catalog"\nclass = "a.Catalog"\noptions = { uri = "https://x", fast = true, '
    'token = { env = "PW" } }\n'
)
S3 = (
    '[connections.lake]\ntype = "s3"\nurl = "s3://bucket/prefix"\naccess_key = { env = "KEY" }\nsecret_key = { env = '
    '"PW" }\n'
)


@pytest.fixture(autouse=True)
def one_catalog_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONDATRA_CATALOG_CLASSES", "a.Catalog")


def read(tmp_path: Path, text: str, known: Secrets = SET) -> tuple[connections.Settings, list[tuple[int, str]]]:
    (tmp_path / "ondatra.toml").write_text(text)
    settings, problems = connections.read(tmp_path, known)
    return settings, [(p.line, p.message) for p in problems]


def test_connections_hold_their_secrets_and_show_none(tmp_path: Path) -> None:
    settings, problems = read(tmp_path, 'dialect = "spark"\n' + JDBC + S3 + CATALOG)
    shop = settings.connections["shop"]
    assert (problems, settings.dialect, sorted(settings.connections), shop.told["password"]) == (
        [],
        "spark",
        ["cat", "lake", "shop"],
        "p-123456",
    )
    assert settings.connections["cat"].told["options"] == {"uri": "https://x", "fast": True, "token": "p-123456"}
    assert settings.connections["cat"].scrub("p-123456 is wrong") == "*** is wrong"
    assert "123456" not in repr(settings) and shop.scrub("FATAL: p-123456 is wrong") == "FATAL: *** is wrong"


def test_a_secret_that_is_not_set_is_named(tmp_path: Path) -> None:
    settings, problems = read(tmp_path, JDBC, secrets.from_environment({}))
    assert (problems, settings.connections["shop"].missing) == ([], ("PW",))


@pytest.mark.parametrize(
    "text, line, words",
    [
        ("colour = 1", 1, "'colour' is no key"),
        ('\ndialect = "mysql"', 2, "duckdb or spark; found 'mysql'"),
        ("\nconnections = 1", 2, "[connections.shop]"),
        ('[connections.shop]\ntype = "ftp"', 2, "jdbc, s3 or catalog; found 'ftp'"),
        (JDBC + 'colour = "red"', 5, "'colour' is no key of type jdbc"),
        (JDBC.replace("shop]", "delta]"), 1, "no word that SQL uses"),
        (JDBC.replace("shop]", "Shop]"), 1, "lower-case"),
        (JDBC.replace('{ env = "PW" }', '"hunter2"'), 4, 'write password = { env = "NAME" }'),
        (JDBC.replace("env =", "file ="), 4, 'password: { env = "NAME" }'),
        (JDBC.replace("db:5432", "app:hunter2@db"), 3, "without user, password or parameters"),
        (JDBC.replace("/shop", "/shop?socketFactory=hunter2"), 3, "without user, password or parameters"),
        (
            JDBC.replace("jdbc:postgresql://db:5432/shop", "jdbc:derby:hunter2;create=true"),
            3,
            "databases: postgresql, mysql",
        ),
        (JDBC + "properties = { socketFactory = 'hunter2' }", 5, "socketFactory is not allowed"),
        (JDBC + "fetch_size = 0", 5, "positive number of rows"),
        (S3.replace("s3://", "file://"), 3, "s3://bucket or"),
        (S3.replace("prefix", "../hunter2"), 3, "s3://bucket or"),
        (CATALOG.replace("a.Catalog", "b.Other"), 3, "ONDATRA_CATALOG_CLASSES (a.Catalog); found 'b.Other'"),
        (CATALOG + "uri = 'x'", 5, "'uri' is no key"),
        (CATALOG.replace('{ env = "PW" }', '"hunter2"'), 4, 'write token = { env = "NAME" }'),
        (CATALOG.replace("uri =", '"a b" ='), 4, "'a b' is no name"),
        (S3.replace('access_key = { env = "KEY" }\n', ""), 1, "own credentials are not used"),
        (S3 + 'format = "xml"', 6, "parquet or delta; found 'xml'"),
    ],
)
def test_what_is_wrong_has_its_line_and_says_what_is_expected(tmp_path: Path, text: str, line: int, words: str) -> None:
    _, problems = read(tmp_path, text)
    assert len(problems) == 1 and problems[0][0] == line and words in problems[0][1] and "hunter2" not in problems[0][1]


def test_columns_that_sql_cannot_tell_apart_are_named_with_a_way_out(tmp_path: Path) -> None:
    shop = read(tmp_path, JDBC)[0].connections["shop"]
    way_out = "make a view in shop that gives them names of their own"
    check_names("shop.public.t", ["id", "a.b", 'say "hi"', "ü"], shop)
    with pytest.raises(BuildError) as alike:
        check_names("shop.public.t", ["id", "name", "Name"], shop)
    with pytest.raises(BuildError) as unnamed:
        check_names("shop.public.t", ["id", ""], shop)
    assert [str(alike.value), str(unnamed.value)] == [
        f"shop.public.t has the columns name and Name, alike but for case: {way_out}",
        f"shop.public.t has a column without a name: {way_out}",
    ]
