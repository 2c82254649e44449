package ondatra;

import java.net.URLEncoder;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/** What a plan of Spark's consists of, as text: one line a node, `class TAB line TAB name parts`. Compiled by Spark's own
 *  compiler of generated code, since a walk from Python asks the JVM ten times a node. */
public class Plans {

    /** Every node: those of subqueries, of CTEs, and whatever else a node holds. Of a view only its name, if `toViews`. */
    public static String nodes(Object plan, boolean toViews) throws Exception {
        StringBuilder out = new StringBuilder();
        Set seen = Collections.newSetFromMap(new IdentityHashMap());
        ArrayDeque left = new ArrayDeque();
        left.push(plan);

        while (!left.isEmpty()) {
            Object item = left.pop();

            if (item instanceof TreeNode) {
                if (!seen.add(item)) {
                    continue;
                }
                TreeNode node = (TreeNode) item;
                out.append(node.getClass().getName()).append('\t');
                out.append(node.origin().line().isDefined() ? node.origin().line().get().toString() : "").append('\t');
                out.append(names(node)).append('\t').append(kind(node)).append('\n');
                if (toViews && node instanceof View) {
                    continue;
                }
                push(left, node.children().iterator());
                push(left, node.innerChildren().iterator());
                push(left, ((scala.Product) node).productIterator());
                if (node instanceof UnresolvedWith) {
                    scala.collection.Iterator entries = ((UnresolvedWith) node).cteRelations().iterator();
                    while (entries.hasNext()) {
                        Object name = ((scala.Product) entries.next()).productElement(0);
                        out.append("cte\t\t").append(URLEncoder.encode(name.toString(), "UTF-8")).append("\t\n");
                    }
                }
            } else if (item instanceof scala.collection.Iterable) {
                push(left, ((scala.collection.Iterable) item).iterator());
            } else if (item instanceof scala.Product && item.getClass().getName().startsWith("scala.")) {
                push(left, ((scala.Product) item).productIterator());
            }
        }
        return out.toString();
    }

    private static String kind(TreeNode node) {
        return node instanceof LogicalPlan ? node.children().isEmpty() ? "leaf" : "plan" : "";
    }

    private static void push(ArrayDeque left, scala.collection.Iterator items) {
        while (items.hasNext()) {
            Object item = items.next();
            if (item != null) {
                left.push(item);
            }
        }
    }

    /** What an unresolved node looks for, its parts encoded and separated by blanks; of a function of Python its name. */
    private static String names(TreeNode node) throws Exception {
        String kind = node.getClass().getSimpleName();
        if (!kind.startsWith("Unresolved") && !kind.equals("PythonUDF")) {
            return "";
        }
        String[] methods = {"multipartIdentifier", "nameParts", "name"};
        for (int i = 0; i < methods.length; i++) {
            Object found;
            try {
                found = node.getClass().getMethod(methods[i], new Class[0]).invoke(node, new Object[0]);
            } catch (Exception none) {
                continue;
            }
            if (found instanceof scala.collection.Iterable) {
                StringBuilder out = new StringBuilder();
                scala.collection.Iterator parts = ((scala.collection.Iterable) found).iterator();
                while (parts.hasNext()) {
                    out.append(out.length() > 0 ? " " : "").append(URLEncoder.encode(parts.next().toString(), "UTF-8"));
                }
                return out.toString();
            }
            if (found != null) {
                return URLEncoder.encode(found.toString(), "UTF-8");
            }
        }
        return "";
    }
}
