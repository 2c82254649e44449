"""The API dict: read strictly, all problems at once, each with file, line and key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from push_bench import Bench, returning

from runtime.errors import Problem, ProjectError
from runtime.push.api_dict import Api, Auth, Destination, PushOptions, RateLimit, Text, find_api, read_api


def read(value: Any, name: str = "crm") -> Api:
    return read_api(value, name, file=f"lib/{name}.star", line=3)


def problems(value: Any) -> list[Problem]:
    with pytest.raises(ProjectError) as caught:
        read(value)
    return caught.value.problems


def test_an_empty_dict_has_every_default() -> None:
    assert read({}) == Api(
        destination=Destination("Crm", "Record"),
        base_url="",
        headers={},
        timeout=30.0,
        auth=None,
        retry=0,
        backoff=1.0,
        rate_limit=None,
        api_calls="all",
        push=PushOptions(100, "sync", 1, 1, 0, 10, 604800.0, 30.0, 3600.0, ()),
    )


def test_every_key_is_read_and_durations_become_seconds() -> None:
    assert read(
        {
            "base_url": "https://x.example/v2",
            "headers": {"X-A": "1"},
            "timeout": 2.5,
            "auth": {"env": "K"},
            "retry": 3,
            "backoff": 0.5,
            "rate_limit": {"requests": 5, "per": "500ms", "name": "all"},
            "api_calls": "off",
            "destination": {"type": "HubSpot", "object": "Contact"},
            "push": {
                "batch_size": 5,
                "batch_mode": "async",
                "max_concurrent": 1,
                "attempts": 2,
                "give_up_after": 4,
                "max_failed_batches": 3,
                "job_max_age": "2d",
                "poll_interval": "1.5m",
                "poll_timeout": "2h",
                "args": ["object"],
            },
        }
    ) == Api(
        destination=Destination("HubSpot", "Contact"),
        base_url="https://x.example/v2",
        headers={"X-A": "1"},
        timeout=2.5,
        auth=Auth("bearer", Text(env="K")),
        retry=3,
        backoff=0.5,
        rate_limit=RateLimit(5, 0.5, "all"),
        api_calls="off",
        push=PushOptions(5, "async", 1, 2, 4, 3, 172800.0, 90.0, 7200.0, ("object",)),
    )


def test_the_object_is_the_one_named_else_the_first_argument_else_record() -> None:
    plain, named = read({}).destination, read({"destination": {"object": "Person"}}).destination

    assert [plain.of(()).object, plain.of(("customers", "eu")).object] == ["Record", "customers"]
    assert named.of(("customers",)).object == "Person"


@pytest.mark.parametrize(
    "given, expected",
    [
        ({"env": "K", "header": "X-Key"}, Auth("header", Text(env="K"), "X-Key")),
        ({"env": "K", "param": "key"}, Auth("param", Text(env="K"), "key")),
        ({"user": "me", "pass": {"env": "P"}}, Auth("basic", Text(env="P"), user=Text("me"))),
        (
            {"oauth2": {"token_url": "https://x/t", "client_id": {"env": "I"}, "client_secret": {"env": "S"}}},
            Auth("oauth2", Text(env="S"), user=Text(env="I"), token_url="https://x/t"),
        ),
        ({"hmac": {"env": "K", "header": "X-Sig"}}, Auth("hmac", Text(env="K"), "X-Sig")),
    ],
)
def test_each_form_of_auth_is_read(given: Any, expected: Auth) -> None:
    assert read({"auth": given}).auth == expected


WRONG = [
    ("retries", {"retries": 3}),
    ("base_url", {"base_url": 5}),
    ("base_url", {"base_url": "x.example"}),
    ("headers", {"headers": ["a"]}),
    ("headers", {"headers": {"a": 1}}),
    ("headers", {"headers": {"a": "b\nc"}}),
    ("timeout", {"timeout": 0}),
    ("timeout", {"timeout": "5"}),
    ("timeout", {"timeout": True}),
    ("retry", {"retry": -1}),
    ("retry", {"retry": 1.0}),
    ("backoff", {"backoff": "1s"}),
    ("rate_limit.per", {"rate_limit": {"requests": 5}}),
    ("rate_limit.requests", {"rate_limit": {"per": "1s"}}),
    ("rate_limit.per", {"rate_limit": {"requests": 1, "per": 10}}),
    ("rate_limit", {"rate_limit": 5}),
    ("auth", {"auth": {"token": "K"}}),
    ("auth", {"auth": {"env": "K", "header": "H", "param": "P"}}),
    ("auth.oauth2.client_secret", {"auth": {"oauth2": {"token_url": "https://x", "client_id": "a"}}}),
    ("auth.hmac.header", {"auth": {"hmac": {"env": "K"}}}),
    ("api_calls", {"api_calls": "some"}),
    ("kind", {"destination": {"kind": "x"}}),
    ("push", {"push": []}),
    ("push.batch_size", {"push": {"batch_size": 0}}),
    ("push.batch_mode", {"push": {"batch_mode": "bulk"}}),
    ("push.max_concurrent", {"push": {"max_concurrent": 2, "batch_mode": "atomic"}}),
    ("push.job_max_age", {"push": {"job_max_age": "7"}}),
    ("push.poll_interval", {"push": {"poll_interval": "1s"}}),
    ("push.poll_timeout", {"push": {"poll_timeout": "1h"}}),
    ("push.args", {"push": {"args": ["rows"]}}),
    ("push.args", {"push": {"args": ["a", "a"]}}),
    ("push.args", {"push": {"args": "a"}}),
]


@pytest.mark.parametrize("key, value", WRONG)
def test_a_wrong_key_is_one_problem_that_names_it(key: str, value: Any) -> None:
    (problem,) = problems(value)
    assert (problem.file, problem.line) == ("lib/crm.star", 3) and key in problem.message


def test_all_wrong_keys_show_at_once() -> None:
    assert [p.message.split()[0] for p in problems({"timeout": 0, "retry": -1, "push": {"attempts": 0}})] == [
        "push.attempts",
        "retry",
        "timeout",
    ]


def test_the_message_has_the_value_found_and_what_is_allowed() -> None:
    (problem,) = problems({"push": {"batch_mode": "bulk"}})
    assert problem.message == "push.batch_mode must be one of sync, atomic, async, not 'bulk'"


def test_the_dict_is_found_on_its_line_with_comments_and_brackets_in_text() -> None:
    text = (
        '# API\nload("lib/a.star", "b")\nAPI = {  # "}"\n    "base_url": "https://x/{id}",\n    "push": {"args": '
        "[]},\n}\ndef push(rows): pass\n"
    )
    assert find_api(text, file="lib/crm.star") == ({"base_url": "https://x/{id}", "push": {"args": []}}, 3)


@pytest.mark.parametrize("text", ["API = {'timeout': 10 * 3}\n", "API = make()\n", "API = {'base_url': URL}\n"])
def test_a_computed_dict_is_a_problem(text: str) -> None:
    with pytest.raises(ProjectError, match="lib/crm.star:1: API must be a literal dict"):
        find_api(text, file="lib/crm.star")


def test_a_file_without_the_dict_is_a_problem(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (tmp_path / "lib/crm.star").write_text(returning("None"))
    assert [str(p) for p in bench.check()] == [
        "lib/crm.star:1: the file needs a literal API dict at its top level: API = {…}"
    ]


def test_a_missing_secret_is_named_with_the_place_to_set_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.lib(returning("None"), auth={"user": {"env": "NAME"}, "pass": {"env": "WORD"}})
    assert [p.message for p in bench.check()] == [
        f"auth needs the secret {n}, which is not set: set it in the environment" for n in ("NAME", "WORD")
    ]


def test_too_few_or_too_many_sink_arguments_are_a_problem(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.lib("def push(rows, object):\n    pass\n", push={"args": ["object"]})
    assert [len(bench.check(*given)) for given in ((), ("a",), ("a", "b"))] == [1, 0, 1]


@pytest.mark.parametrize(
    "text, said",
    [
        ("def push(rows, region):\n    pass\n", "push() asks for 'region'"),
        ("def send(rows):\n    pass\n", "no push()"),
        ("def push(rows)\n    pass\n", "Parse error"),
        ("x = nope\ndef push(rows):\n    pass\n", "Variable `nope` not found"),
        ('load("lib/none.star", "x")\ndef push(rows):\n    pass\n', "lib/none.star does not exist"),
    ],
)
def test_what_is_wrong_with_the_text_is_a_problem_of_line_2(tmp_path: Path, text: str, said: str) -> None:
    bench = Bench(tmp_path)
    bench.lib(text)
    (problem,) = bench.check()
    assert said in problem.message and problem.file == "lib/crm.star" and problem.line in (1, 2)


def test_a_parameter_with_a_default_needs_no_giver(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.lib('def push(rows, region="eu",  # it\'s a (comment\n         *, mode=1):\n    pass\n')
    assert bench.check() == []


def test_async_without_poll_is_a_problem(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.lib("def push(rows):\n    return {}\n", push={"batch_mode": "async"})
    assert "poll" in bench.messages()
