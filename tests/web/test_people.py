"""What people do with their own account."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.web.filled import person, workspace

pytestmark = pytest.mark.django_db


def test_a_new_password_ends_every_other_session(client: Client) -> None:
    user, elsewhere = person("alice", workspace()), Client()
    for one in (client, elsewhere):
        one.force_login(user)

    wrong = client.post(
        "/settings/account/password/", {"old_password": "no", "new_password1": "a", "new_password2": "b"}
    )
    told = {"old_password": "alice-password", "new_password1": "mint-tea-at-nine", "new_password2": "mint-tea-at-nine"}
    done = client.post("/settings/account/password/", told)

    user.refresh_from_db()
    assert (wrong.status_code, done.status_code, user.check_password("mint-tea-at-nine")) == (422, 302, True)
    assert (client.get("/settings/account/").status_code, elsewhere.get("/settings/account/").status_code) == (200, 302)
