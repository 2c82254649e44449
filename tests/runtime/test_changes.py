"""Contract 5: what is sent is the net change since the state last delivered, for every two changes and every state
between them."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from staged import Lake, lines, read_chunk

from runtime.lake.spark import session
from runtime.staging import states
from runtime.staging.chunks import WaitingChunk
from runtime.staging.request import Staged

STATES = {
    "done": states.DONE,
    "untried": states.UNTRIED,
    "refused": states.REFUSED,
    "rejected": states.REJECTED,
    "unknown": states.UNKNOWN,
    "blocked": states.BLOCKED,
    "superseded": states.SUPERSEDED,
}
#: (first change, second change) -> what is sent if the first was delivered, if it was not, if that is unknown.
#: The row was "old" before both, where it was; the first change makes it "mid", the second "new".
INSERT, UPDATE, BACK, DELETE = (
    [("insert", "new")],
    [("before", "mid"), ("after", "new")],
    [("before", "mid"), ("after", "old")],
    [("gone", "mid")],
)
PAIR, SAME = [("before", "old"), ("after", "new")], [("before", "old"), ("after", "old")]
TABLE: dict[tuple[str, str], tuple[Any, Any, Any]] = {
    ("insert", "update"): (UPDATE, INSERT, INSERT),
    ("insert", "delete"): (DELETE, [], DELETE),
    ("update", "update"): (UPDATE, PAIR, PAIR),
    ("update", "back"): (BACK, [], SAME),
    ("update", "delete"): (DELETE, [("gone", "mid")], [("gone", "mid")]),
    ("delete", "same"): ([("insert", "old")], [], SAME),
    ("delete", "insert"): (INSERT, PAIR, PAIR),
}
#: The rows of a vanished group that go are those that the destination holds.
TRACKED = {**TABLE, ("update", "delete"): (DELETE, [("gone", "old")], [("gone", "old")])}
CASES = [(first, second, state) for (first, second), state in product(TABLE, STATES)]
KINDS = ["merge", "tracked"]

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark() -> Any:
    return session()


def rows(kind: str, key: str, value: str) -> list[tuple[str, str]]:
    """A group has a second row that never changes."""
    return [(key, value), (key, "~")] if kind == "tracked" else [(key, value)]


def wanted(kind: str, first: str, second: str, state: str) -> list[tuple[str, str, str]]:
    table = TABLE if kind == "merge" else TRACKED
    said = table[first, second][{"done": 0, "superseded": 0, "blocked": 0, "unknown": 2}.get(state, 1)]
    names = {
        "merge": {"before": "update_preimage", "after": "update_postimage", "gone": "delete", "insert": "insert"},
        "tracked": {"before": "delete", "after": "insert", "gone": "delete", "insert": "insert"},
    }[kind]
    key = f"{first} {second} {state}"
    return [(names[what], *row) for what, value in said for row in rows(kind, key, value)]


@pytest.fixture(scope="module", params=KINDS)
def outcome(
    request: pytest.FixtureRequest, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Staged, list[WaitingChunk]]:
    """All cases side by side: two commits, and between them the states of the first one's rows."""
    kind = request.param
    lake = Lake(spark, tmp_path_factory.mktemp(kind), kind)
    keys = {case: " ".join(case) for case in CASES}
    lake.insert(*[row for c in CASES if c[0] != "insert" for row in rows(kind, keys[c], "old")])
    delivered = lake.version
    lake.change(
        [row for c in CASES if c[0] != "delete" for row in rows(kind, keys[c], "mid")],
        gone=[keys[c] for c in CASES if c[0] == "delete"],
    )
    mark = lake.version
    chunks = [
        WaitingChunk(
            7 + i,
            chunk.url,
            np.array(
                [STATES[k.split()[2]] for k in read_chunk(chunk.url, None).column("id").to_pylist()], dtype=np.uint8
            ),
        )
        for i, chunk in enumerate(lake.stage(delivered).chunks)
    ]
    lake.change(
        [
            row
            for c in CASES
            if c[1] != "delete"
            for row in rows(kind, keys[c], "new" if c[1] in ("update", "insert") else "old")
        ],
        gone=[keys[c] for c in CASES if c[1] == "delete"],
    )
    return kind, lake.stage(mark, *chunks), chunks


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case))
def test_two_changes_become_their_net_change(
    outcome: tuple[str, Staged, list[WaitingChunk]], case: tuple[str, str, str]
) -> None:
    kind, staged, _ = outcome
    sent = [line for line in lines(staged, waits=case[2] == "blocked") if line[1] == " ".join(case)]
    assert sent == wanted(kind, *case)
    assert not [line for line in lines(staged, waits=case[2] != "blocked") if line[1] == " ".join(case)]


def test_what_was_composed_is_superseded_and_nothing_else(outcome: tuple[str, Staged, list[WaitingChunk]]) -> None:
    _, staged, chunks = outcome
    composed = (states.UNTRIED, states.REFUSED, states.REJECTED, states.UNKNOWN)
    assert {i: p.tolist() for i, p in staged.superseded.items()} == {
        c.id: np.flatnonzero(np.isin(c.states, composed)).tolist() for c in chunks
    }


def test_counts_are_the_records_of_this_run(outcome: tuple[str, Staged, list[WaitingChunk]]) -> None:
    kind, staged, _ = outcome
    per_case = {case: wanted(kind, *case) for case in CASES}
    changed = sum(line[0] in ("insert", "update_postimage") for said in per_case.values() for line in said)
    deleted = sum(len(said) for said in per_case.values() if {line[0] for line in said} == {"delete"})
    assert (staged.changed, staged.deleted, staged.carried) == (changed, deleted, 0)


def test_deletes_of_vanished_keys_are_a_phase_of_their_own(outcome: tuple[str, Staged, list[WaitingChunk]]) -> None:
    kind, staged, _ = outcome
    first = [line for c in staged.chunks if c.phase == 0 for line in lines(Staged((c,)), waits=c.waits)]
    assert sorted(first) == sorted(
        line for case in CASES for line in wanted(kind, *case) if {x[0] for x in wanted(kind, *case)} == {"delete"}
    )


#: scd2: a row's first version or its second, then a newer one -> what is sent if the earlier was delivered, if it was
#: not or that is unknown.
CLOSED = [("update_preimage", "mid"), ("update_postimage", "mid"), ("insert", "new")]
VERSIONS = {
    "first": (CLOSED, [("insert", "mid"), ("insert", "new")]),
    "second": (CLOSED, [("update_preimage", "old"), ("update_postimage", "old"), ("insert", "mid"), ("insert", "new")]),
}


def test_versions_that_were_not_delivered_go_out_whole_and_in_order(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "scd2")
    cases = list(product(VERSIONS, STATES))
    lake.insert(*[(" ".join(case), "old") for case in cases if case[0] == "second"])
    delivered = lake.version
    lake.change([(" ".join(case), "mid") for case in cases])
    mark = lake.version
    chunks = [
        WaitingChunk(
            7 + i,
            chunk.url,
            np.array(
                [STATES[k.split()[1]] for k in read_chunk(chunk.url, None).column("id").to_pylist()], dtype=np.uint8
            ),
        )
        for i, chunk in enumerate(lake.stage(delivered).chunks)
    ]
    lake.change([(" ".join(case), "new") for case in cases])
    staged = lake.stage(mark, *chunks)
    for version, state in cases:
        sent = [(what, n) for what, key, n in lines(staged, waits=state == "blocked") if key == f"{version} {state}"]
        assert (version, state, sent) == (
            version,
            state,
            VERSIONS[version][state in ("untried", "refused", "rejected", "unknown")],
        )


#: What becomes of a row whose table or partition is replaced.
FATES = {"gone": [], "same": [("insert", "mid")], "other": [("insert", "new")]}


@pytest.mark.parametrize("kind", ["table", "partition"])
def test_replaced_rows_are_deleted_where_they_may_have_arrived_and_come_anew(
    spark: Any, tmp_path: Path, kind: str
) -> None:
    lake = Lake(spark, tmp_path, kind)
    cases = list(product(FATES, STATES))
    lake.insert(*[(" ".join(case), "mid") for case in cases])
    mark = lake.version
    chunks = [
        WaitingChunk(
            7 + i,
            chunk.url,
            np.array(
                [STATES[k.split()[1]] for k in read_chunk(chunk.url, None).column("id").to_pylist()], dtype=np.uint8
            ),
        )
        for i, chunk in enumerate(lake.stage(None).chunks)
    ]
    lake.overwrite(*[(" ".join(case), said[0][1]) for case in cases for said in [FATES[case[0]]] if said])
    staged = lake.stage(mark, *chunks)
    found, behind = lines(staged), lines(staged, waits=True)
    for fate, state in cases:
        key, gone = f"{fate} {state}", [("delete", "mid")]
        sent, waits = ([(what, n) for what, k, n in part if k == key] for part in (found, behind))
        arrived = state in ("done", "superseded", "unknown")
        assert (key, sent, waits) == (key, gone * arrived + FATES[fate], gone * (state == "blocked"))
    assert [what for what, _, _ in found] == sorted(what for what, _, _ in found)  # deletes first


def test_a_pair_has_the_newest_row_id_on_both_sides(spark: Any, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, "merge")
    lake.insert(("a", "old"))
    mark = lake.version
    lake.change([], gone=["a"])
    lake.change([("a", "new")])
    staged = lake.stage(mark)
    table = read_chunk(staged.chunks[0].url, None)
    newest = spark.read.format("delta").load(lake.table.path).head()["__ondatra_rowid"]
    assert list(
        zip(table.column("__ondatra_change_type").to_pylist(), table.column("__ondatra_rowid").to_pylist(), strict=True)
    ) == [("update_preimage", newest), ("update_postimage", newest)]
