"""Which rule holds for a sync, and what a rule may be."""

from __future__ import annotations

from datetime import time
from typing import Any

import pytest

from ondatra_web.alerts import rules
from ondatra_web.models import (
    Alert,
    AlertRule,
    Sync,
)
from runtime.errors import ConfigError
from tests.web.alerting import ends, rule_of, story
from tests.web.filled import a_sync, closing

pytestmark = pytest.mark.django_db


def test_the_narrowest_rule_of_a_kind_holds_for_a_sync(sync: Sync) -> None:
    tagged = a_sync(sync.workspace, "sync.tagged", tags=["loose"])
    strict = a_sync(sync.workspace, "sync.strict", tags=["loose"])
    rules.save(sync.workspace, rules.Wanted("rejected", warning=20, tag="loose"))
    rules.save(sync.workspace, rules.Wanted("rejected", warning=2, critical=8, sync=strict))
    for one in (sync, tagged, strict):
        ends(one, "completed_with_rejects", **closing(rejected=10))

    assert [len(story(s, "rejected")) for s in (sync, tagged, strict)] == [1, 0, 1]
    assert Alert.objects.get(sync=strict).level == "critical"


def test_a_rule_that_is_switched_off_raises_nothing_and_ends_what_it_had_raised(sync: Sync) -> None:
    ends(sync, "failed")
    rules.save(sync.workspace, rules.Wanted("failure", warning=1, enabled=False), rule=rule_of(sync, "failure"))
    ends(sync, "failed")

    assert [line.split()[0] for line in story(sync, "failure")] == ["raised", "resolved"]


def test_a_rule_that_is_deleted_leaves_the_next_wider_one_and_that_of_all_as_it_was(sync: Sync) -> None:
    own = rules.save(sync.workspace, rules.Wanted("failure", warning=5, sync=sync))
    rules.delete(own)
    everybody = rules.save(
        sync.workspace, rules.Wanted("failure", warning=9, critical=9), rule=rule_of(sync, "failure")
    )
    rules.delete(everybody)

    found = rule_of(sync, "failure")
    assert (found.pk != everybody.pk, found.warning, found.critical) == (True, 1, 3)
    assert not AlertRule.objects.filter(sync=sync).exists()


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"kind": "rows"}, "there is no rule 'rows'; there are: failure"),
        ({"unit": "hours"}, "rejected is not measured in 'hours'; there are: percent, records"),
        ({"warning": None}, "at least one of both is needed"),
        ({"warning": 9, "critical": 3}, "warning is 9: it cannot be above critical, which is 3"),
        ({"warning": 0}, "warning: a number from 0.001 on is expected; found 0"),
        ({"quiet_from": time(22)}, "give both, or none"),
        ({"quiet_zone": "Europe/Nowhere"}, "there is no time zone 'Europe/Nowhere'"),
        ({"measure": "bytes"}, "there is no measure 'bytes'"),
    ],
)
def test_a_rule_that_cannot_be_says_why(sync: Sync, wanted: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        rules.save(sync.workspace, rules.Wanted(**{"kind": "rejected", "warning": 5, **wanted}))
