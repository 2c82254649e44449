"""compose.yaml and its settings, without Docker; the story's cluster starts what stands in it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from cluster import composed

ROOT = Path(__file__).resolve().parent.parent
#: Compose's own, and those of images that are not ours.
OTHERS = {"COMPOSE_PROFILES", "POSTGRES_PASSWORD", "S3_PASSWORD", "SPARK_WORKER_CORES", "SPARK_WORKER_MEMORY"}
SETTING = re.compile(r"`([A-Z][A-Z0-9_]+(?:_…)?)`")
OURS = ("web", "pipeline", "push", "push-more", "alerts", "scheduler")


def documented() -> set[str]:
    rows = re.findall(r"^\| (`[A-Z].*?) \|", (ROOT / "docs/settings.md").read_text(encoding="utf-8"), re.M)
    return {name for row in rows for name in SETTING.findall(row)}


def listed() -> dict[str, str]:
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    return dict(re.findall(r"^#?([A-Za-z]\w*)=(.*)$", text, re.M))


def test_the_file_is_right_by_the_specifications_schema() -> None:
    schema = json.loads((ROOT / "tests/schemas/compose-spec.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(composed.read())


def test_the_schema_would_find_a_wrong_word() -> None:
    schema = json.loads((ROOT / "tests/schemas/compose-spec.json").read_text(encoding="utf-8"))
    told = composed.read()
    told["services"]["web"]["heathcheck"] = told["services"]["web"].pop("healthcheck")

    with pytest.raises(jsonschema.ValidationError, match="heathcheck"):
        jsonschema.Draft202012Validator(schema).validate(told)


def test_the_example_of_settings_has_every_one_that_is_documented() -> None:
    names = {"ONDATRA_SPARK_…" if name.startswith("ONDATRA_SPARK_") else name for name in listed()}

    assert names - OTHERS == documented()


def test_what_has_no_usual_value_is_asked_for_and_all_else_is_only_an_example() -> None:
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    asked = set(re.findall(r"^(\w+)=", text, re.M))
    needed = {name for name in composed.ENV if _is_refused({k: v for k, v in composed.ENV.items() if k != name})}

    assert asked == needed == set(composed.ENV)


def _is_refused(env: dict[str, str]) -> bool:
    try:
        composed.read(env)
    except ValueError:
        return True
    return False


def test_every_process_of_ours_tells_whether_it_lives() -> None:
    services = composed.read()["services"]

    assert {name: services[name]["healthcheck"]["test"].split()[-1] for name in OURS} == {
        **{name: name for name in OURS},
        "push-more": "push",
    }


def test_spark_and_more_workers_come_with_the_profile_only() -> None:
    services = composed.read()["services"]

    assert {name for name, told in services.items() if "cluster" in told.get("profiles", [])} == {
        "spark-master",
        "spark-worker",
        "push-more",
    }


def test_every_variable_of_the_file_is_a_setting_that_is_listed() -> None:
    text = composed.FILE.read_text(encoding="utf-8")
    services = yaml.safe_load(text)["services"]
    given = {name for told in services.values() for name in told.get("environment", {})}
    of_images = {"POSTGRES_USER", "POSTGRES_DB", "SPARK_NO_DAEMONIZE", "SPARK_DAEMON_MEMORY", "SPARK_WORKER_DIR"}

    assert set(re.findall(r"\$\{(\w+)", text)) - set(listed()) == set()
    assert given - set(listed()) - of_images - {"PYSPARK_PYTHON"} == set()


def test_the_image_runs_as_a_plain_user_and_has_all_jars() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()

    assert lines[-1] == "USER ondatra" and "RUN python -m runtime.lake.jars s3 /opt/jars" in lines
