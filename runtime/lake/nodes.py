"""What a plan of Spark's consists of, node by node: the private part of Spark by which a text is known before it runs.

There are two ways, with the same result: a walk that Spark's own compiler of generated code compiles, and one from
here, which asks the JVM ten times a node.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

from runtime.errors import said_by_spark
from runtime.lake.internals import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("ondatra.lake")
JAVA = Path(__file__).with_name("Plans.java")
LOGICAL = [f"org.apache.spark.sql.catalyst.plans.logical.{name}" for name in ("LogicalPlan", "View", "UnresolvedWith")]
SCALA = ("scala.collection.Iterable", "scala.Product")
TREE = "org.apache.spark.sql.catalyst.trees.TreeNode"
_compiled: dict[str, Any] = {}


def nodes(spark: SparkSession, plan: Plan, *, to_views: bool, plain: bool = False) -> list[str]:
    """Every node of a plan, a line each as Plans.java says it; of a view only its name, if `to_views`. The walk is
    compiled once for each JVM; where it cannot be, which is logged, or `plain` is asked for, it is made from here."""
    gateway: Any = spark.sparkContext._gateway
    if _compiled.get("gateway") is not gateway:
        _compiled.update(gateway=gateway, walk=_compiled_walk(gateway))
    if plain or _compiled["walk"] is None:
        return list(_Walk(gateway).nodes(plan, to_views))
    given = gateway.new_array(gateway.jvm.java.lang.Object, 2)
    given[0], given[1] = plan, to_views
    return str(_compiled["walk"].invoke(None, given)).splitlines()


def _compiled_walk(gateway: Any) -> Any:
    """None where Spark brings no compiler, or another one."""
    try:
        return next(m for m in compiled(gateway, JAVA).getMethods() if m.getName() == "nodes")
    except Exception as error:
        log.warning("plans are looked through the plain way, which is slower: %s", said_by_spark(str(error)))
        return None


def compiled(gateway: Any, java: Path, of: Any = None) -> Any:
    """The class of a file, by Spark's own compiler of generated code; `of` is one that it may name."""
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    known = gateway.jvm.Thread.currentThread().getContextClassLoader() if of is None else of.getClassLoader()
    compiler.setParentClassLoader(known)
    compiler.cook(java.read_text(encoding="utf-8"))
    return compiler.getClassLoader().loadClass(f"ondatra.{java.stem}")


class _Walk:
    """The walk of Plans.java, from here."""

    def __init__(self, gateway: Any) -> None:
        jvm = gateway.jvm
        self.loader = jvm.Thread.currentThread().getContextClassLoader()
        self.named, self.util = jvm.java.lang.Class, jvm.java.util
        self.tree, self.plan, self.view, self.unresolved_with = map(self._class, (TREE, *LOGICAL))
        self.iterable, self.product = map(self._class, SCALA)

    def _class(self, name: str) -> Any:
        return self.named.forName(name, False, self.loader)

    def nodes(self, plan: Any, to_views: bool) -> Iterator[str]:
        from py4j.java_gateway import JavaObject

        seen = self.util.Collections.newSetFromMap(self.util.IdentityHashMap())
        left = [plan]
        while left:
            item = left.pop()
            if not isinstance(item, JavaObject):
                continue
            if self.tree.isInstance(item):
                if item not in seen:
                    seen.add(item)  # says nothing of whether it was there
                    yield self._told(item)
                    yield from self._ctes(item)
                    left += self._inside(item, to_views)
            elif self.iterable.isInstance(item):
                left += _each(item)
            elif self.product.isInstance(item) and str(item.getClass().getName()).startswith("scala."):
                left += _each(item.productIterator())

    def _told(self, node: Any) -> str:
        line, place = node.origin().line(), ""
        if self.plan.isInstance(node):
            place = "leaf" if node.children().isEmpty() else "plan"
        return "\t".join((node.getClass().getName(), str(line.get()) if line.isDefined() else "", _names(node), place))

    def _ctes(self, node: Any) -> list[str]:
        entries = _each(node.cteRelations()) if self.unresolved_with.isInstance(node) else []
        return [f"cte\t\t{quote_plus(str(entry.productElement(0)))}\t" for entry in entries]

    def _inside(self, node: Any, to_views: bool) -> list[Any]:
        if to_views and self.view.isInstance(node):
            return []
        return [*_each(node.children()), *_each(node.innerChildren()), *_each(node.productIterator())]


def _names(node: Any) -> str:
    """What an unresolved node looks for; of a function of Python its name."""
    from py4j.protocol import Py4JError

    kind = str(node.getClass().getSimpleName())
    if not kind.startswith("Unresolved") and kind != "PythonUDF":
        return ""
    for method in ("multipartIdentifier", "nameParts", "name"):
        try:
            found = getattr(node, method)()
        except Py4JError:
            continue
        if found is not None:
            return " ".join(quote_plus(str(part)) for part in ([found] if isinstance(found, str) else _each(found)))
    return ""


def _each(items: Any) -> list[Any]:
    """Of something of Scala's that is iterated over."""
    found, left = [], items.iterator()
    while left.hasNext():
        found.append(left.next())
    return found
