"""A destination that cannot be reached: the run says so, and nothing is lost."""
from pushing import SYNC, contacts, counts, push_lib


def test_an_unreachable_destination_is_named_with_its_reason_and_gets_everything_later(case):
    contacts(case, (1, "a@x"), (2, "b@x"))
    push_lib(case, base_url="http://127.0.0.1:9", retry=0)
    said = case.command("run", "--workspace", case.slug)
    assert (said.exit, case.sent()) == (1, [])
    reason = "POST http://127.0.0.1:9/push: connection error: Connection refused (lib/crm.star line "
    assert [line.strip().split(reason)[0] for line in said.stdout.splitlines() if reason in line] == ["2 due again: "]

    push_lib(case)
    assert case.run().counts(SYNC) == counts(source=2, unchanged=2, carried=2, planned=2, succeeded=2)
