package ondatra;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Murmur3Hash;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.SpecifiedWindowFrame;
import org.apache.spark.sql.catalyst.expressions.UnboundedFollowing$;
import org.apache.spark.sql.catalyst.expressions.UnboundedPreceding$;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.WindowFrame;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.CollectList;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.plans.logical.ArrowEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** Windows of DuckDB's (`grouping/partitions.py`) over the rows of partitions: as functions of lists each row has the
 *  list of all rows of its partition. The rows go to a worker, those of a partition after each other, and come back
 *  with the values. A rule before `Passes`; what it does not know it leaves as it is. */
public class Windows extends Asking {

    /** A pickled function, in two parts: between them goes, as bytes, what it shall do. */
    public Windows(byte[] before, byte[] after) {
        super(before, after);
    }

    public LogicalPlan rewritten(LogicalPlan plan) {
        Set tried = new HashSet();
        Window window = next(plan, tried);
        while (window != null) {
            LogicalPlan now = new Rewriting(plan, window).rewritten();
            plan = now == null ? plan : now;
            window = next(plan, tried);
        }
        return plan;
    }

    /** The lowest window with lists that was not tried yet. */
    private static Window next(LogicalPlan plan, Set tried) {
        Window found = null;
        Iterator each = list(plan.children()).iterator();
        while (each.hasNext() && found == null) {
            found = next((LogicalPlan) each.next(), tried);
        }
        if (found == null && plan instanceof Window) {
            each = list(((Window) plan).windowExpressions()).iterator();
            while (each.hasNext()) {
                NamedExpression one = (NamedExpression) each.next();
                if (function(one) instanceof CollectList && tried.add(one.exprId())) {
                    found = (Window) plan;
                }
            }
        }
        return found;
    }

    /** What a window computes; null for what is no aggregate. */
    private static AggregateFunction function(NamedExpression one) {
        Expression of = value((Expression) one);
        Expression how = of instanceof WindowExpression ? ((WindowExpression) of).windowFunction() : of;
        return how instanceof AggregateExpression ? ((AggregateExpression) how).aggregateFunction() : null;
    }

    /** The windows of one node. */
    private class Rewriting {
        private final LogicalPlan plan;
        private final Window window;
        /** The lists by their ids, each with the row that it is of, and the numbers of rows. */
        private final Map lists = new LinkedHashMap();
        private final Set numbers = new HashSet();
        /** Beside each row: where its partition is, and where it is in that. */
        private Alias part;
        private Alias order;
        /** What is read of the window above it; the calls of its lists, by what a pass is told of them the fields of
         *  their answers. */
        private final Set read = new HashSet();
        private final List mine = new ArrayList();
        private final Map steps = new LinkedHashMap();
        private List along;

        Rewriting(LogicalPlan plan, Window window) {
            this.plan = plan;
            this.window = window;
        }

        /** Null where something else reads the lists. */
        LogicalPlan rewritten() {
            look();
            if (numbers.isEmpty() || lists.isEmpty() || !gathered(plan) || mine.isEmpty()) {
                return null;
            }
            read.addAll(ids(plan.output()));
            along = new ArrayList();
            Iterator each = list(window.output()).iterator();
            while (each.hasNext()) {
                Attribute column = (Attribute) each.next();
                if (read.contains(column.exprId()) && !isHeld(column)) {
                    if (!travels(column.dataType())) {
                        return null;
                    }
                    along.add(column);
                }
            }
            LogicalPlan answers = answered(sorted(rows()));
            return without(plan, answers);
        }

        void look() {
            List orders = list(window.orderSpec());
            Iterator each = list(window.windowExpressions()).iterator();
            while (each.hasNext() && orders.size() == 1) {
                NamedExpression one = (NamedExpression) each.next();
                AggregateFunction how = function(one);
                Expression row = how == null ? null : (Expression) list(how.children()).get(0);
                if (how instanceof Max && row.semanticEquals(((SortOrder) orders.get(0)).child())) {
                    numbers.add(one.exprId());
                } else if (how instanceof CollectList && isWhole((WindowExpression) value((Expression) one))) {
                    lists.put(one.exprId(), rowOf(row));
                }
            }
        }

        boolean isWhole(WindowExpression of) {
            WindowFrame frame = of.windowSpec().frameSpecification();
            return frame instanceof SpecifiedWindowFrame
                && ((SpecifiedWindowFrame) frame).lower() == UnboundedPreceding$.MODULE$
                && ((SpecifiedWindowFrame) frame).upper() == UnboundedFollowing$.MODULE$;
        }

        /** The column of a row: one for all lists of it. */
        Alias rowOf(Expression row) {
            Iterator each = lists.values().iterator();
            while (each.hasNext()) {
                Alias other = (Alias) each.next();
                if (other.child().semanticEquals(row)) {
                    return other;
                }
            }
            return alias(row, "__row" + lists.size());
        }

        List columns() {
            return new ArrayList(new LinkedHashSet(lists.values()));
        }

        /** Notes what is read above the window; whether the lists go nowhere but to calls of DuckDB's. */
        boolean gathered(LogicalPlan at) {
            if (at == window) {
                return true;
            }
            boolean fit = true;
            List of = list(at.expressions());
            Iterator each = (at instanceof ArrowEvalPython ? list(((ArrowEvalPython) at).udfs()) : of).iterator();
            while (each.hasNext()) {
                Expression one = (Expression) each.next();
                Set used = ids(one);
                read.addAll(used);
                if (isHeld(used) && !(at instanceof Project && one instanceof Attribute)) {
                    fit &= at instanceof ArrowEvalPython && ((ArrowEvalPython) at).evalType() == SCALAR
                        && isMine((PythonUDF) one);
                    mine.add(one);
                }
            }
            each = list(at.children()).iterator();
            while (each.hasNext() && fit) {
                fit = gathered((LogicalPlan) each.next());
            }
            return fit;
        }

        /** Whether a call reads lists of these windows and the number of the row, and nothing else. */
        boolean isMine(PythonUDF udf) {
            boolean listed = false;
            boolean numbered = false;
            Iterator each = list(udf.children()).iterator();
            while (each.hasNext()) {
                Object one = each.next();
                if (!(one instanceof Attribute) || !isHeld((Attribute) one)) {
                    return false;
                }
                listed |= lists.containsKey(((Attribute) one).exprId());
                numbered |= numbers.contains(((Attribute) one).exprId());
            }
            return listed && numbered && calls.containsKey(udf.name()) && udf.func() instanceof SimplePythonFunction;
        }

        boolean isHeld(Attribute one) {
            return lists.containsKey(one.exprId()) || numbers.contains(one.exprId());
        }

        boolean isHeld(Set used) {
            Set held = new HashSet(lists.keySet());
            held.addAll(numbers);
            held.retainAll(used);
            return !held.isEmpty();
        }

        /** The plan with the answers in the place of the window, and of the calls. */
        LogicalPlan without(LogicalPlan at, LogicalPlan answers) {
            if (at == window) {
                return answers;
            }
            List children = new ArrayList();
            boolean same = true;
            Iterator each = list(at.children()).iterator();
            while (each.hasNext()) {
                LogicalPlan child = (LogicalPlan) each.next();
                LogicalPlan now = without(child, answers);
                same &= now == child;
                children.add(now);
            }
            if (same) {
                return at;
            }
            if (at instanceof Project && isHeld(ids(((Project) at).projectList()))) {
                List wanted = new ArrayList();
                each = list(((Project) at).projectList()).iterator();
                while (each.hasNext()) {
                    Object one = each.next();
                    if (!(one instanceof Attribute) || !isHeld((Attribute) one)) {
                        wanted.add(one);
                    }
                }
                each = steps.values().iterator();
                while (each.hasNext()) {
                    wanted.addAll((List) each.next());
                }
                return new Project(seq(wanted), (LogicalPlan) children.get(0));
            }
            return at instanceof ArrowEvalPython ? answered((ArrowEvalPython) at, (LogicalPlan) children.get(0))
                : (LogicalPlan) at.withNewChildren(seq(children));
        }

        /** The calls of a node, of which those of the windows are answered already. */
        LogicalPlan answered(ArrowEvalPython eval, LogicalPlan child) {
            List others = new ArrayList();
            List results = new ArrayList();
            List outer = new ArrayList(list(child.output()));
            List udfs = list(eval.udfs());
            for (int i = 0; i < udfs.size(); i++) {
                PythonUDF udf = (PythonUDF) udfs.get(i);
                Attribute result = (Attribute) list(eval.resultAttrs()).get(i);
                if (!mine.contains(udf)) {
                    others.add(udf);
                    results.add(result);
                    continue;
                }
                List fields = new ArrayList();
                List answer = (List) steps.get(step(udf));
                StructField[] kinds = ((StructType) udf.dataType()).fields();
                for (int f = 0; f < kinds.length; f++) {
                    fields.add(new Literal(UTF8String.fromString(kinds[f].name()), DataTypes.StringType));
                    fields.add(answer.get(f));
                }
                outer.add(new Alias(new CreateNamedStruct(seq(fields)), result.name(), result.exprId(), empty(),
                    scala.Option.empty(), empty()));
            }
            LogicalPlan plan = outer.size() == list(child.output()).size() ? child : new Project(seq(outer), child);
            return others.isEmpty() ? plan : new ArrowEvalPython(seq(others), seq(results), plan, eval.evalType());
        }

        LogicalPlan rows() {
            List others = new ArrayList();
            Iterator each = list(window.windowExpressions()).iterator();
            while (each.hasNext()) {
                NamedExpression one = (NamedExpression) each.next();
                if (!lists.containsKey(one.exprId()) && !numbers.contains(one.exprId())) {
                    others.add(one);
                }
            }
            LogicalPlan plan = others.isEmpty() ? window.child() : new Window(seq(others), window.partitionSpec(),
                window.orderSpec(), window.child(), window.hint());
            part = alias(list(window.partitionSpec()).isEmpty()
                ? (Expression) new Literal(Integer.valueOf(0), DataTypes.IntegerType)
                : new Murmur3Hash(window.partitionSpec(), 42), "__part");
            order = alias(((SortOrder) list(window.orderSpec()).get(0)).child(), "__order");
            List wanted = new ArrayList(along);
            wanted.add(part);
            wanted.add(order);
            wanted.addAll(columns());
            return new Project(seq(wanted), plan);
        }

        /** The rows of a partition after each other, in their order: the columns along, then the part, then those of
         *  the calls. */
        LogicalPlan sorted(LogicalPlan child) {
            List keys = new ArrayList();
            keys.add(part.toAttribute());
            LogicalPlan parted = list(window.partitionSpec()).isEmpty() ? new Repartition(1, true, child)
                : new RepartitionByExpression(seq(keys), child, scala.Option.empty(), scala.Option.empty());
            List orders = new ArrayList();
            orders.add(ascending(part.toAttribute()));
            orders.add(ascending(order.toAttribute()));
            LogicalPlan sorted = new Sort(seq(orders), false, parted, scala.Option.empty());
            List sent = new ArrayList();
            Iterator each = along.iterator();
            while (each.hasNext()) {
                sent.add(alias((Expression) each.next(), "s" + sent.size()));
            }
            sent.add(part.toAttribute());
            each = columns().iterator();
            while (each.hasNext()) {
                sent.add(((Alias) each.next()).toAttribute());
            }
            return new Project(seq(sent), sorted);
        }

        /** The columns along, and the answers of the calls: of the same ones once. */
        LogicalPlan answered(LogicalPlan child) {
            List output = new ArrayList();
            List back = new ArrayList();
            for (int i = 0; i < along.size(); i++) {
                output.add(((Attribute) along.get(i)).withName("c" + i).withNullability(true));
                back.add(Integer.valueOf(i));
            }
            Set names = new TreeSet();
            int columns = along.size() + 1 + columns().size();
            for (int i = 0; i < mine.size(); i++) {
                PythonUDF udf = (PythonUDF) mine.get(i);
                names.add(udf.name());
                if (steps.containsKey(step(udf))) {
                    continue;
                }
                List answer = new ArrayList();
                StructField[] kinds = ((StructType) udf.dataType()).fields();
                for (int f = 0; f < kinds.length; f++) {
                    answer.add(new AttributeReference("c" + output.size(), kinds[f].dataType(), true, Metadata.empty(),
                        id(), empty()));
                    output.add(answer.get(f));
                    back.add(Integer.valueOf(columns++));
                }
                steps.put(step(udf), answer);
            }
            List told = new ArrayList();
            told.add("[\"whole\", " + along.size() + "]");
            told.addAll(steps.keySet());
            return passed(names, told, back, (SimplePythonFunction) ((PythonUDF) mine.get(0)).func(), output, child, true);
        }

        /** What a pass is told of a call: the column of each row that it reads, -1 for the number of a row. */
        String step(PythonUDF udf) {
            List places = new ArrayList();
            Iterator each = list(udf.children()).iterator();
            while (each.hasNext()) {
                Object row = lists.get(((Attribute) each.next()).exprId());
                places.add(Integer.valueOf(row == null ? -1 : along.size() + 1 + columns().indexOf(row)));
            }
            return "[\"window\", \"" + udf.name() + "\", " + places + "]";
        }
    }
}
