"""Our own: delivered rows sent again by identifier, whole units, what is superseded; what waits, dropped."""
import re

import pytest

from pushing import SYNC, contacts, counts, pushes, run_id, sent, source, statuses

THREE = [(1, "a@x"), (2, "b@x"), (3, "c@x")]


def delivered(case, *rows, **more):
    contacts(case, *(rows or THREE), **more)
    result = case.run()
    assert result.exit == 0
    case.dest.clear()
    return result


def test_a_delivered_row_is_sent_again_as_it_is_now_and_one_that_is_gone_is_listed(case):
    first = delivered(case, header="-- @on_missing: delete")
    source(case, (1, "a@x"), (2, "new@x"))
    case.run()
    case.dest.clear()
    chosen = ("retry", run_id(first), "--identifier", 2, "--identifier", 3)
    preview = case.command(*chosen)
    assert (preview.exit, case.dest.calls) == (0, []) and "2 records of run" in preview.stdout and "2 were delivered" in preview.stdout
    assert case.command(*chosen, "--yes").exit == 0
    assert sent(case) == [("update_postimage", 2, "new@x")]
    case.dest.clear()
    assert (case.run().exit, case.dest.calls) == (0, [])


def test_without_an_identifier_a_row_delivered_since_is_superseded(case):
    contacts(case, *THREE)
    statuses(case, {2: "reject: bad"})
    first = case.run()
    statuses(case)
    source(case, (1, "a@x"), (2, "good@x"), (3, "c@x"))
    case.run()
    case.dest.clear()
    result = case.command("retry", run_id(first), "--yes")
    assert (result.exit, case.dest.calls) == (0, []) and "1 is superseded (delivered since, or gone): 2" in result.stdout


@pytest.mark.parametrize("kind, key", [("append", "@unique_key: id"), ("table", ""), ("scd2", "@unique_key: id")])
def test_a_delivered_row_of_another_kind_goes_alone(case, kind, key):
    first = delivered(case, kind=kind, key=key, header="-- @identifier: id")
    assert case.command("retry", run_id(first), "--identifier", 2, "--yes").exit == 0
    assert pushes(case) == [[("update_postimage" if kind == "scd2" else "insert", 2, "b@x")]]


def test_a_tracked_group_is_sent_again_with_all_its_rows_whatever_changed_since(case):
    first = delivered(case, (1, "a@x"), (1, "b@x"), (2, "c@x"), kind="tracked", key="@group_key: id", push={"batch_size": 1})
    source(case, (1, "a@x"), (1, "new@x"), (2, "c@x"))
    statuses(case, {1: "reject: closed"})
    case.run()
    statuses(case)
    case.dest.clear()
    # by the first run's record: the group's newest state is the rejected one, its old rows' deletes included
    assert case.command("retry", run_id(first), "--identifier", 1, "--yes").exit == 0
    assert [sorted(rows) for rows in pushes(case)] == [
        [("delete", 1, "a@x"), ("delete", 1, "b@x"), ("insert", 1, "a@x"), ("insert", 1, "new@x")]]
    case.dest.clear()
    assert case.command("retry", run_id(first), "--identifier", 1, "--yes").exit == 0
    assert [sorted(rows) for rows in pushes(case)] == [[("insert", 1, "a@x"), ("insert", 1, "new@x")]]


def test_discard_counts_first_then_drops_what_waits(case):
    contacts(case, *THREE)
    statuses(case, {1: "error: busy", 2: "reject: bad"})
    case.run()
    statuses(case)
    case.dest.clear()
    found = case.command("discard", SYNC, "--workspace", case.slug)
    assert found.exit == 0 and "2 records of sync.contacts wait: 1 due, 1 rejected, 0 in open jobs" in found.stdout
    assert case.command("discard", SYNC, "--workspace", case.slug, "--yes").exit == 0
    result = case.run()
    assert (result.exit, case.dest.calls, result.counts(SYNC)) == (0, [], counts(source=3, unchanged=3))
    source(case, (1, "a@x"), (2, "b2@x"), (3, "c@x"))       # what changes is sent as usual, from the state that was dropped
    assert case.run().exit == 0
    assert sent(case) == [("update_postimage", 2, "b2@x"), ("update_preimage", 2, "b@x")]


def test_what_is_ticked_on_the_page_is_previewed_then_sent_and_what_waits_is_discarded_there(case):
    from django.contrib.auth.models import User
    from django.test import Client

    from ondatra_web import jobs
    from ondatra_web.models import AuditLog, Membership, Run

    contacts(case, *THREE)
    statuses(case, {1: "reject: bad", 2: "reject: bad"})
    first = Run.objects.get(pk=int(run_id(case.run())))
    statuses(case)
    case.dest.clear()
    user = User.objects.create_user(f"again-{first.pk}")
    Membership.objects.create(user=user, organization=first.sync.workspace.organization, role="operator")
    client = Client()
    client.force_login(user)
    window = client.get(f"/runs/{first.pk}/records/").content.decode()
    assert re.search(r'name="i"\s+value="1"', window) and "Send again" in window
    preview = client.get(f"/runs/{first.pk}/retry/?i=1&i=3").content.decode()
    assert "2 records of run" in preview and "1 is undelivered" in preview and "1 was delivered and would be sent again" in preview
    assert not case.dest.calls
    answer = client.post(f"/runs/{first.pk}/retry/?i=1&i=3")
    new = Run.objects.get(pk=int(answer.url.split("/")[2]))
    jobs.pipeline.fn(new.pk)
    jobs.push.fn(new.pk)
    new.refresh_from_db()
    assert (new.status, sent(case)) == ("completed", [("insert", 1, "a@x"), ("update_postimage", 3, "c@x")])
    assert "Discard 1 record<" in client.get(f"/syncs/{first.sync_id}/discard/").content.decode()
    client.post(f"/syncs/{first.sync_id}/discard/")
    assert AuditLog.objects.filter(action="discard", user=user).get().detail == {"due": 0, "rejected": 1, "blocked": 0}
