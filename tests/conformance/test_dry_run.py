"""Our own: a dry run shows its records and its first requests, without secrets, and none leaves."""
from pushing import SYNC, contacts, run_id


def test_a_dry_run_shows_the_first_requests_without_secrets_or_masked_values(case):
    case.setenv("CRM_TOKEN", "very-secret-token")
    contacts(case, *[(i, f"person{i}@example.org") for i in range(1, 6)], header="-- @mask: email", push={"batch_size": 2},
             auth={"env": "CRM_TOKEN"}, headers={"X-Team": "blue"})
    result = case.run(dry_run=True)
    first = result.sync(SYNC)["first_requests"]["requests"]
    assert (case.dest.calls, result.exit) == ([], 0)
    assert [(r["call"], r["method"], r["url"], r["body"].count("__ondatra_rowid")) for r in first] == [
        (n, "POST", f"{case.dest.url}/push", rows) for n, rows in ((1, 2), (2, 2), (3, 1))]
    assert first[0]["headers"]["X-Team"] == "blue" and first[0]["headers"]["Authorization"] == "***"
    assert "very-secret" not in result.stdout and "person1@" not in result.stdout
    run = run_id(result)
    planned = case.command("records", run, "--format", "json").json
    assert [(r["identifier"], r["status"]) for r in planned] == [(str(i), "planned") for i in range(1, 6)]
    assert not list(case.store.glob(f"sync_tracking_datasets/*/*/{run}"))
