"""Our own: whole runs against real destinations, with the push functions of docs/destinations.md."""
import pytest
from pushing import counts, model, source
from real_destinations import kinto, pocketbase, push_function, wiremock


def sync(case, name, service, args="", **instead):
    """The contacts to that destination."""
    text = push_function(name, service.url.removesuffix("/api").removesuffix("/v1"))
    for old, new in instead.items():
        assert old in text
        text = text.replace(old, new)
    case.lib(name, text)
    model(case, "-- @on_missing: delete", sink=name + args)
    return "sync.contacts"


def refused(case):
    return [(r["identifier"], r["status_message"]) for r in case.records("sync.contacts") if r["status"] == "rejected"]


@pytest.mark.slow
def test_kinto_answers_each_row_and_nobody_elses_edit_is_overwritten(case, tmp_path):
    with kinto(tmp_path) as service:
        case.setenv("KINTO_USER", "admin")
        case.setenv("KINTO_PASSWORD", "s3cret-word")
        held = lambda: {r["id"]: r["email"] for r in service.ask("GET", "/buckets/crm/collections/contacts/records")["data"]}
        source(case, (1, "a@x"), (2, "no email"), (3, "c@x"), (4, "d@x"))
        name = sync(case, "kinto", service, "('/buckets/crm/collections/contacts')")
        assert case.run().counts(name) == counts(source=4, changed=4, planned=4, succeeded=3, rejected=1)
        assert refused(case) == [("2", "400 'no email' does not match '@'")]
        assert held() == {"1": "a@x", "3": "c@x", "4": "d@x"}

        service.ask("PATCH", "/buckets/crm/collections/contacts/records/3", {"data": {"email": "theirs@x"}})
        source(case, (1, "new@x"), (2, "b@x"), (3, "ours@x"))
        assert case.run().counts(name) == counts(source=3, changed=3, deleted=1, planned=4, succeeded=3, rejected=1)
        assert (refused(case), held()) == ([("3", "somebody else changed the record")], {"1": "new@x", "2": "b@x", "3": "theirs@x"})
        asked = [c for c in case.api_calls(name) if c["method"] == "POST"]
        assert {c["status"] for c in asked} == {200} and "s3cret-word" not in str(asked) and sum(c["request_body"].count("If-Match") for c in asked) == 2


@pytest.mark.slow
def test_pocketbase_takes_a_batch_whole_and_a_bad_row_ends_alone(case, tmp_path):
    with pocketbase(tmp_path) as (service, token):
        case.setenv("POCKETBASE_TOKEN", token)
        held = lambda: {r["crm_id"]: r["email"] for r in service.ask("GET", "/collections/contacts/records?perPage=100")["items"]}
        rows = [(i, f"p{i}@example.com") for i in range(1, 5)]
        source(case, *rows[:2], (3, "no email"), rows[3])
        name = sync(case, "pocketbase", service, "('contacts')", **{'"attempts": 7': '"attempts": 3'})       # enough for four rows
        assert case.run().counts(name) == counts(source=4, changed=4, planned=4, succeeded=3, retrying=1)
        assert refused(case) == [("3", '400 {"email":{"code":"validation_is_email","message":"Must be a valid email address."}}')]
        assert held() == {str(i): e for i, e in rows if i != 3}
        assert 429 in {c["status"] for c in case.api_calls(name)}       # waited for, and no row knows of it

        source(case, rows[1], rows[2], (4, "new@example.com"))
        assert case.run().counts(name) == counts(source=3, unchanged=1, changed=2, deleted=1, planned=3, succeeded=3)
        assert held() == {"2": "p2@example.com", "3": "p3@example.com", "4": "new@example.com"}


def stub(service, state, then, method, path, **response):
    """One step of a scenario: what is answered in that state, and the next one."""
    service.ask("POST", "/__admin/mappings", {"scenarioName": "job", "requiredScenarioState": state, "newScenarioState": then,
                                              "request": {"method": method, "urlPath": path}, "response": response})


@pytest.mark.slow
def test_a_bulk_job_is_polled_through_broken_connections_and_each_row_has_its_result(case, tmp_path):
    from django.conf import settings

    with wiremock(tmp_path, settings.ONDATRA.jars_dir) as service:
        case.setenv("JOBS_TOKEN", "t0ken-value")
        stub(service, "Started", "open", "POST", "/jobs", status=503, headers={"Retry-After": "0"})
        stub(service, "open", "taken", "POST", "/jobs", status=202, headers={"Location": "/jobs/41"})
        stub(service, "taken", "cut", "GET", "/jobs/41", jsonBody={"state": "working"})
        stub(service, "cut", "half", "GET", "/jobs/41", fault="CONNECTION_RESET_BY_PEER")
        stub(service, "half", "garbage", "GET", "/jobs/41", fault="RANDOM_DATA_THEN_CLOSE")
        stub(service, "garbage", "done", "GET", "/jobs/41", jsonBody={"state": "done", "results": "/jobs/41/results"})
        stub(service, "done", "done", "GET", "/jobs/41/results", body='{"id": 1}\n{"id": 2, "error": "unknown domain"}\n{"id": 3}\n')
        source(case, (1, "a@x"), (2, "b@x"), (3, "c@x"))
        name = sync(case, "jobs", service, **{'"retry": 3': '"retry": 1, "backoff": 0'})     # so that one broken look remains, after its retry
        assert case.run().counts(name) == counts(source=3, changed=3, planned=3, succeeded=2, rejected=1)
        assert refused(case) == [("2", "unknown domain")]
        posts = service.ask("POST", "/__admin/requests/find", {"method": "POST", "urlPath": "/jobs"})["requests"]
        assert [p["body"].splitlines()[1] for p in posts] == ['{"id":2,"email":"b@x","gone":false}'] * 2
        assert case.run().counts(name) == counts(source=3, unchanged=3)
