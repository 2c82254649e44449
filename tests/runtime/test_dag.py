"""The order of models."""

from __future__ import annotations

from runtime.project import dag

CHAIN = {"c": ("b",), "a": (), "b": ("a",), "d": ("a", "elsewhere")}


def test_inputs_come_before_what_reads_them() -> None:
    assert dag.order(CHAIN) == (["a", "b", "c", "d"], [])


def test_a_cycle_is_a_path_that_ends_where_it_began() -> None:
    _, cycles = dag.order({"a": ("c",), "b": ("a",), "c": ("b",), "d": ("a",)})
    assert cycles == [["a", "c", "b", "a"]]


def test_a_model_that_reads_itself_is_a_cycle() -> None:
    assert dag.order({"a": ("a",)})[1] == [["a", "a"]]


def test_a_long_chain_is_no_trouble() -> None:
    chain = {f"m{i}": (f"m{i + 1}",) for i in range(5_000)} | {"m5000": ()}
    names, cycles = dag.order(chain)
    assert (names[0], names[-1], len(names), cycles) == ("m5000", "m0", 5_001, [])


def test_upstream_is_the_names_and_all_that_they_need() -> None:
    assert dag.upstream(["b", "d"], CHAIN) == {"a", "b", "d", "elsewhere"}


def test_levels_have_what_needs_nothing_of_their_own_level() -> None:
    assert dag.levels(["a", "b", "c", "d"], CHAIN) == [["a"], ["b", "d"], ["c"]]
    assert dag.levels(["c", "d"], CHAIN) == [["c", "d"]]
