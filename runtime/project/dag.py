"""The order of models: inputs first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def order(inputs: Mapping[str, Iterable[str]]) -> tuple[list[str], list[list[str]]]:
    """(names, inputs before what reads them, else as given; cycles, each as a path that ends where it began)."""
    done: dict[str, bool] = {}
    found: list[str] = []
    cycles: list[list[str]] = []
    for root in inputs:
        stack: list[tuple[str, list[str]]] = [(root, list(inputs[root]))]
        path = [root]
        if root in done:
            continue
        done[root] = False
        while stack:
            name, left = stack[-1]
            if not left:
                stack.pop()
                path.pop()
                done[name] = True
                found.append(name)
                continue
            following = left.pop(0)
            if following not in inputs:
                continue
            if following not in done:
                done[following] = False
                stack.append((following, list(inputs[following])))
                path.append(following)
            elif not done[following]:
                cycles.append([*path[path.index(following) :], following])
    return found, cycles


def levels(order: Iterable[str], inputs: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """These names, inputs first, in groups of which each needs only what stands in groups before it."""
    depth: dict[str, int] = {}
    found: list[list[str]] = []
    for name in order:
        depth[name] = max((depth[other] + 1 for other in inputs[name] if other in depth), default=0)
        found += [[]] if depth[name] == len(found) else []
        found[depth[name]].append(name)
    return found


def upstream(names: Iterable[str], inputs: Mapping[str, Iterable[str]]) -> set[str]:
    """These names and everything that they need."""
    needed: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in needed:
            needed.add(name)
            left += inputs.get(name, ())
    return needed
