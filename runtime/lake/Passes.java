package ondatra;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MonotonicallyIncreasingID;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.expressions.RowFrame$;
import org.apache.spark.sql.catalyst.expressions.SpecifiedWindowFrame;
import org.apache.spark.sql.catalyst.expressions.UnboundedFollowing$;
import org.apache.spark.sql.catalyst.expressions.UnboundedPreceding$;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.WindowFrame;
import org.apache.spark.sql.catalyst.expressions.WindowSpecDefinition;
import org.apache.spark.sql.catalyst.expressions.XxHash64;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.CollectList;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate;
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.ArrowEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.BooleanType$;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Calls of DuckDB as passes: the columns that are needed go to a Python worker, answers and columns come back, and a
 *  condition of DuckDB's leaves rows out there. As functions of Arrow arrays, which Spark knows how to plan, each row
 *  is kept in a queue until its answer comes, answers are packed into a struct, and each call takes a worker.
 *
 *  The last rule of Spark's optimizer, after columns are pruned and conditions are pushed down. What it does not know
 *  it leaves as it is. */
public class Passes extends Asking {

    private final int most;

    /** A pickled function, in two parts: between them goes, as bytes, what it shall do. At most so many columns that
     *  a call neither reads nor makes pass along with it. */
    public Passes(byte[] before, byte[] after, Integer most) {
        super(before, after);
        this.most = most.intValue();
    }

    public LogicalPlan rewritten(LogicalPlan plan) {
        return new Rewriting().below(plan, null);
    }

    /** What a pass does: steps in JSON over columns, first those that are sent, then answers; some come back. */
    private static class Pass {
        LogicalPlan child;
        List sent = new ArrayList();
        int columns = 0;
        List steps = new ArrayList();
        Set names = new TreeSet();
        List back = new ArrayList();
        List output = new ArrayList();
        SimplePythonFunction function;
        boolean deterministic = true;

        /** Where an attribute is, where each input of the calls is, and where the fields of an answer begin. */
        final Map place = new HashMap();
        final List at = new ArrayList();
        final Map begins = new HashMap();

        int starts(Object result) {
            return ((Integer) begins.get(((Attribute) result).exprId())).intValue();
        }
    }

    /** One plan. */
    private class Rewriting {
        /** Of an answer's struct, by its id, the attributes that now stand for its fields. */
        private final Map fields = new HashMap();
        private final Map made = new IdentityHashMap();

        /** `need`: the expressions above that say which columns are read; null where all are, by their places. */
        LogicalPlan below(LogicalPlan plan, List need) {
            if (need != null && plan instanceof ArrowEvalPython) {
                LogicalPlan pass = pass((ArrowEvalPython) plan, new ArrayList(), need);
                if (pass != null) {
                    return pass;
                }
            }
            if (need != null && plan instanceof Filter && ((Filter) plan).child() instanceof ArrowEvalPython) {
                List others = new ArrayList();
                LogicalPlan pass = filtered((Filter) plan, need, others);
                if (pass != null) {
                    return others.isEmpty() ? pass : flat(new Filter(anded(others), pass));
                }
            }
            List told = null;
            if (plan instanceof Project || plan instanceof Aggregate) {
                told = new ArrayList(list(plan.expressions()));
            } else if (need != null && (plan instanceof Filter || plan instanceof Join || plan instanceof Sort
                    || plan instanceof GlobalLimit || plan instanceof LocalLimit || plan instanceof Window)) {
                told = new ArrayList(need);
                told.addAll(list(plan.expressions()));
            }
            List children = new ArrayList();
            boolean same = true;
            Iterator each = list(plan.children()).iterator();
            while (each.hasNext()) {
                LogicalPlan child = (LogicalPlan) each.next();
                LogicalPlan now = below(child, told);
                same &= now == child;
                children.add(now);
            }
            return flat(same ? plan : (LogicalPlan) plan.withNewChildren(seq(children)));
        }

        /** A filter over answers: what DuckDB said alone of a row is obeyed in its worker. */
        LogicalPlan filtered(Filter filter, List need, List others) {
            ArrowEvalPython eval = (ArrowEvalPython) filter.child();
            Set results = ids(eval.resultAttrs());
            List kept = new ArrayList();
            Iterator each = conjuncts(filter.condition(), new ArrayList()).iterator();
            while (each.hasNext()) {
                Expression part = (Expression) each.next();
                GetStructField said = part instanceof GetStructField ? (GetStructField) part : null;
                if (said != null && said.child() instanceof Attribute && said.dataType() instanceof BooleanType
                        && results.contains(((Attribute) said.child()).exprId())) {
                    kept.add(said);
                } else {
                    others.add(part);
                }
            }
            List told = new ArrayList(need);
            told.addAll(others);
            return pass(eval, kept, told);
        }

        LogicalPlan pass(ArrowEvalPython eval, List kept, List need) {
            List udfs = list(eval.udfs());
            Map first = repeated(eval.child());
            if (eval.evalType() != SCALAR) {
                return null;
            }
            Iterator each = udfs.iterator();
            while (each.hasNext()) {
                PythonUDF udf = (PythonUDF) each.next();
                if (!calls.containsKey(udf.name()) || !(udf.func() instanceof SimplePythonFunction)) {
                    return null;
                }
            }

            // what goes in: the inputs of the calls, and columns that are read above
            List inputs = new ArrayList();
            List places = new ArrayList();
            each = udfs.iterator();
            while (each.hasNext()) {
                places.add(placed(list(((PythonUDF) each.next()).children()), inputs, first));
            }
            Set read = new HashSet();
            each = need.iterator();
            while (each.hasNext()) {
                read.addAll(ids(list(((Expression) each.next()).references().toSeq())));
            }
            List along = new ArrayList();
            List asked = new ArrayList(inputs);
            each = list(eval.child().output()).iterator();
            while (each.hasNext()) {
                Attribute column = (Attribute) each.next();
                if (read.contains(column.exprId())) {
                    if (!travels(column.dataType())) {
                        return null;
                    }
                    along.add(column);
                    asked.add(column);
                }
            }
            if (along.size() > most + inputs.size()) {
                return null;
            }
            LogicalPlan child = grouped(eval.child(), inputs, along, (PythonUDF) udfs.get(0));
            if (child == null) {
                child = below(eval.child(), asked);
            }

            Pass pass = started(child, inputs, along);
            List results = list(eval.resultAttrs());
            for (int i = 0; i < udfs.size(); i++) {
                call(pass, (PythonUDF) udfs.get(i), (Attribute) results.get(i), (List) places.get(i));
            }
            for (int i = 0; i < kept.size(); i++) {
                GetStructField said = (GetStructField) kept.get(i);
                int at = pass.starts(said.child()) + said.ordinal();
                pass.steps.add("[\"keep\", " + at + "]");
            }
            back(pass, along, results, need);
            return planned(pass);
        }

        /** The column that each argument is in, which is added where it is new. */
        List placed(List arguments, List inputs, Map first) {
            List found = new ArrayList();
            Iterator each = arguments.iterator();
            while (each.hasNext()) {
                Expression argument = (Expression) ((Expression) each.next()).transform(new Swapped(first));
                int at = -1;
                for (int i = 0; i < inputs.size() && at < 0; i++) {
                    at = argument.deterministic() && argument.semanticEquals((Expression) inputs.get(i)) ? i : -1;
                }
                if (at < 0) {
                    at = inputs.size();
                    inputs.add(argument);
                }
                found.add(Integer.valueOf(at));
            }
            return found;
        }

        /** An aggregate whose lists the worker makes, of rows in the order of their groups: Spark holds the list of a
         *  group in memory, which a large one would end. Null where they stay Spark's. `inputs`, which are computed of
         *  what it gives, become columns of it, and so does what HAVING says of a group without DuckDB. */
        LogicalPlan grouped(LogicalPlan plan, List inputs, List along, PythonUDF like) {
            Expression having = null;
            plan = bare(plan);
            if (plan instanceof Filter) {
                having = ((Filter) plan).condition();
                plan = bare(((Filter) plan).child());
            }
            if (!(plan instanceof Aggregate)) {
                return null;
            }
            Aggregate given = (Aggregate) plan;
            Map values = new HashMap();
            List outputs = new ArrayList();
            Set read = ids(along);
            read.addAll(ids(inputs));
            Iterator each = list(given.aggregateExpressions()).iterator();
            while (each.hasNext()) {
                NamedExpression one = (NamedExpression) each.next();
                values.put(one.exprId(), value((Expression) one));
                if (read.contains(one.exprId())) {
                    outputs.add(one);
                }
            }
            int own = outputs.size();
            for (int i = 0; i < inputs.size(); i++) {
                if (!(inputs.get(i) instanceof Attribute)) {
                    outputs.add(alias((Expression) ((Expression) inputs.get(i)).transform(new Swapped(values)), "__in" + i));
                }
            }
            if (having != null) {
                outputs.add(alias((Expression) having.transform(new Swapped(values)), "__having"));
            }
            if (!isGrouped(list(given.groupingExpressions()), outputs)) {
                return null;
            }
            for (int i = 0, at = own; i < inputs.size(); i++) {
                if (!(inputs.get(i) instanceof Attribute)) {
                    inputs.set(i, ((NamedExpression) outputs.get(at++)).toAttribute());
                }
            }
            List all = list(given.expressions());
            given = new Aggregate(given.groupingExpressions(), seq(outputs), below(given.child(), all), given.hint());
            given = (Aggregate) flat(given);

            List keys = list(given.groupingExpressions());
            List rows = new ArrayList();
            for (int i = 0; i < keys.size(); i++) {
                Expression key = NormalizeFloatingNumbers$.MODULE$.normalize((Expression) keys.get(i));
                rows.add(alias(key, "__key" + i));
            }
            Alias order = alias(new MonotonicallyIncreasingID(), "__order");
            Attribute at = order.toAttribute().withNullability(true);
            Groups groups = new Groups(rows, list(given.aggregateExpressions()), keys, at);
            rows.add(order);
            LogicalPlan parted = new Project(seq(rows), given.child());
            parted = keys.isEmpty() ? new Repartition(1, true, withNone(parted))
                : new RepartitionByExpression(seq(groups.keys), parted, scala.Option.empty(), scala.Option.empty());
            List orders = new ArrayList();
            if (groups.windows.isEmpty()) {
                orders.add(ascending(groups.by)); // by one number, which is the quickest
            } else {
                for (int i = 0; i < keys.size(); i++) {
                    orders.add(ascending((Expression) groups.keys.get(i)));
                }
                orders.add(ascending(at));
            }
            LogicalPlan sorted = new Sort(seq(orders), false, parted, scala.Option.empty());
            if (!groups.windows.isEmpty()) {
                sorted = new Window(seq(groups.windows), seq(groups.keys), empty(), sorted, scala.Option.empty());
            }

            Pass pass = new Pass();
            pass.child = sorted;
            pass.sent = groups.sent();
            pass.columns = groups.stay.size() + 1 + groups.lists.size(); // the number of rows of a group, and its lists
            pass.steps.add(groups.step());
            pass.function = (SimplePythonFunction) like.func();
            int last = groups.places.size() - (having == null ? 0 : 1);
            if (having != null) {
                pass.steps.add("[\"keep\", " + groups.places.get(last) + "]");
            }
            for (int i = 0; i < last; i++) {
                pass.back.add(groups.places.get(i));
                Attribute column = ((NamedExpression) list(given.aggregateExpressions()).get(i)).toAttribute();
                pass.output.add(column.withName("c" + i).withNullability(true));
            }
            return planned(pass);
        }

        /** With a row of NULLs before the others, since Spark asks no worker about no rows. */
        LogicalPlan withNone(LogicalPlan plan) {
            List none = new ArrayList();
            Iterator each = list(plan.output()).iterator();
            while (each.hasNext()) {
                Attribute column = (Attribute) each.next();
                none.add(alias(new Literal(null, column.dataType()), column.name()));
            }
            List both = new ArrayList();
            both.add(plan);
            both.add(new Project(seq(none), new OneRowRelation()));
            return new Union(seq(both), false, false);
        }

        /** One that goes on from another pass, if nothing stands between them; else a new one. */
        Pass started(LogicalPlan child, List inputs, List along) {
            List wanted = new ArrayList();
            Iterator each = inputs.iterator();
            while (each.hasNext()) {
                wanted.add(((Expression) each.next()).transform(new Fields(fields)));
            }
            each = along.iterator();
            while (each.hasNext()) {
                wanted.addAll(parts((Attribute) each.next()));
            }

            List renamed = new ArrayList();
            LogicalPlan under = child;
            while (under instanceof Project && onlyNames(list(((Project) under).projectList()))) {
                renamed.addAll(0, list(((Project) under).projectList()));
                under = ((Project) under).child();
            }
            Pass other = onlyAttributes(wanted) ? (Pass) made.get(under) : null;
            Pass pass = new Pass();
            pass.child = bare(child);
            if (other != null) {
                pass.child = other.child;
                pass.sent = other.sent;
                pass.columns = other.columns;
                pass.steps.addAll(other.steps);
                pass.names.addAll(other.names);
                pass.deterministic = other.deterministic;
                for (int i = 0; i < other.output.size(); i++) {
                    pass.place.put(((Attribute) other.output.get(i)).exprId(), other.back.get(i));
                }
                for (int i = 0; i < renamed.size(); i++) {
                    NamedExpression one = (NamedExpression) renamed.get(i);
                    pass.place.put(one.exprId(), pass.place.get(((Attribute) value((Expression) one)).exprId()));
                }
            } else if (!onlyAttributes(wanted)) {
                pass.child = child;
            }
            for (int i = 0; i < wanted.size(); i++) {
                Expression one = (Expression) wanted.get(i);
                Object key = one instanceof Attribute ? ((Attribute) one).exprId() : (Object) Integer.valueOf(i);
                if (!pass.place.containsKey(key)) {
                    pass.place.put(key, Integer.valueOf(pass.columns++));
                    pass.sent.add(named(one, pass.sent));
                }
                pass.at.add(pass.place.get(key));
            }
            return pass;
        }

        /** With a name that no other has: Arrow knows columns by it. */
        NamedExpression named(Expression one, List others) {
            boolean free = one instanceof Attribute && !((Attribute) one).name().startsWith("__i");
            for (int i = 0; i < others.size() && free; i++) {
                free = !((NamedExpression) others.get(i)).name().equalsIgnoreCase(((Attribute) one).name());
            }
            return free ? (NamedExpression) one
                : alias(one, "__i" + others.size());
        }

        /** The attributes that stand for a column now: itself, or the fields of an answer. */
        List parts(Attribute column) {
            List found = new ArrayList();
            List parts = (List) fields.get(column.exprId());
            Iterator each = (parts == null ? new ArrayList() : parts).iterator();
            while (each.hasNext()) {
                Object part = each.next();
                if (part != null) {
                    found.add(part);
                }
            }
            if (parts == null) {
                found.add(column);
            }
            return found;
        }

        /** Adds attributes to those that are chosen, each once. */
        void added(List attributes, List wanted) {
            Iterator each = attributes.iterator();
            while (each.hasNext()) {
                Object one = each.next();
                if (!wanted.contains(one)) {
                    wanted.add(one);
                }
            }
        }

        /** The plan without projections that only choose columns. */
        LogicalPlan bare(LogicalPlan plan) {
            while (plan instanceof Project && onlyAttributes(list(((Project) plan).projectList()))) {
                plan = ((Project) plan).child();
            }
            return plan;
        }

        void call(Pass pass, PythonUDF udf, Attribute result, List arguments) {
            StringBuilder step = new StringBuilder("[\"call\", \"" + udf.name() + "\", [");
            for (int i = 0; i < arguments.size(); i++) {
                step.append(i == 0 ? "" : ", ").append(pass.at.get(((Integer) arguments.get(i)).intValue()));
            }
            pass.steps.add(step.append("]]").toString());
            pass.names.add(udf.name());
            pass.function = (SimplePythonFunction) udf.func();
            pass.deterministic &= udf.deterministic();
            pass.begins.put(result.exprId(), Integer.valueOf(pass.columns));
            pass.columns += ((StructType) result.dataType()).fields().length;
        }

        /** What comes back: the columns that are read above, and of each answer the fields that are. */
        void back(Pass pass, List along, List results, List need) {
            Iterator each = along.iterator();
            while (each.hasNext()) {
                Iterator inner = parts((Attribute) each.next()).iterator();
                while (inner.hasNext()) {
                    Attribute part = (Attribute) inner.next();
                    pass.back.add(pass.place.get(part.exprId()));
                    pass.output.add(part.withName("c" + pass.output.size()).withNullability(true));
                }
            }
            for (int i = 0; i < results.size(); i++) {
                Attribute result = (Attribute) results.get(i);
                StructField[] kinds = ((StructType) result.dataType()).fields();
                Set used = new HashSet();
                each = need.iterator();
                while (each.hasNext()) {
                    used((Expression) each.next(), result, used, kinds.length);
                }
                if (used.isEmpty() && i == results.size() - 1 && pass.output.isEmpty()) {
                    used.add(Integer.valueOf(0)); // rows without a column cannot be counted
                }
                List parts = new ArrayList();
                for (int f = 0; f < kinds.length; f++) {
                    if (!used.contains(Integer.valueOf(f))) {
                        parts.add(null);
                        continue;
                    }
                    Attribute part = new AttributeReference("c" + pass.output.size(), kinds[f].dataType(), true,
                        Metadata.empty(), id(), empty());
                    parts.add(part);
                    pass.back.add(Integer.valueOf(pass.starts(result) + f));
                    pass.output.add(part);
                }
                fields.put(result.exprId(), parts);
            }
        }

        void used(Expression in, Attribute result, Set found, int all) {
            if (in instanceof GetStructField && isIt(((GetStructField) in).child(), result)) {
                found.add(Integer.valueOf(((GetStructField) in).ordinal()));
            } else if (isIt(in, result)) {
                for (int i = 0; i < all; i++) {
                    found.add(Integer.valueOf(i));
                }
            } else {
                Iterator each = list(in.children()).iterator();
                while (each.hasNext()) {
                    used((Expression) each.next(), result, found, all);
                }
            }
        }

        LogicalPlan planned(Pass pass) {
            LogicalPlan child = new Project(seq(pass.sent), pass.child);
            LogicalPlan plan = passed(pass.names, pass.steps, pass.back, pass.function, pass.output, child,
                pass.deterministic);
            made.put(plan, pass);
            return plan;
        }

        /** The node with fields of answers as the columns that they are now. */
        LogicalPlan flat(LogicalPlan plan) {
            if (fields.isEmpty()) {
                return plan;
            }
            if (plan instanceof Project) {
                List wanted = new ArrayList();
                boolean same = true;
                Iterator each = list(((Project) plan).projectList()).iterator();
                while (each.hasNext()) {
                    Expression one = (Expression) each.next();
                    Expression read = value(one);
                    if (read instanceof Attribute && fields.containsKey(((Attribute) read).exprId())) {
                        fields.put(((NamedExpression) one).exprId(), fields.get(((Attribute) read).exprId()));
                        added(parts((Attribute) read), wanted);
                        same = false;
                    } else {
                        wanted.add(one);
                    }
                }
                plan = same ? plan : new Project(seq(wanted), ((Project) plan).child());
            }
            LogicalPlan found = (LogicalPlan) plan.transformExpressions(new Fields(fields));
            Iterator each = ids(list(found.references().toSeq())).iterator();
            while (each.hasNext()) {
                if (fields.containsKey(each.next())) {
                    throw new IllegalStateException("an answer is read whole by " + found.nodeName());
                }
            }
            return found;
        }
    }

    /** What is sent of the rows of an aggregate: what they are sorted by, the keys, what Spark says of each group, beside
     *  each of its rows; then their order, and what is listed, by its fields: Spark takes twice as long for structs. */
    private static class Groups {
        final List keys = new ArrayList();
        final List windows = new ArrayList();
        final List windowed = new ArrayList();
        final Expression by;
        private final int begin; // of the keys
        /** Columns of the groups, after which come the number of rows and the lists; the place there of each output. */
        final List stay = new ArrayList();
        final List places = new ArrayList();
        /** Columns of the rows. */
        final List fields = new ArrayList();
        /** The lists, as `group_task.grouped` has them, and the aggregates that they are. */
        final List lists = new ArrayList();
        final List listed = new ArrayList();

        /** Of a row that is one: of all rows, without keys, not the first. */
        private final Expression real;

        /** `rows`: the keys as columns, to which is added what else the rows need. */
        Groups(List rows, List outputs, List grouping, Attribute order) {
            real = new IsNotNull(order);
            for (int i = 0; i < rows.size(); i++) {
                keys.add(((Alias) rows.get(i)).toAttribute());
            }
            boolean one = keys.size() == 1 && NUMBERS.contains(((Expression) keys.get(0)).dataType().typeName());
            by = keys.isEmpty() ? order : one ? (Expression) keys.get(0) : new XxHash64(seq(keys), 42L);
            stay.add(one ? (Object) keys.get(0) : alias(keys.isEmpty() ? new Literal(Boolean.TRUE, BooleanType$.MODULE$) : by,
                "__by"));
            begin = one ? 0 : 1;
            stay.addAll(one ? new ArrayList() : keys);
            fields.add(order);
            for (int i = 0; i < outputs.size(); i++) {
                Expression output = value((Expression) outputs.get(i));
                if (keyAt(output, grouping) >= 0) {
                    places.add(Integer.valueOf(begin + keyAt(output, grouping)));
                } else if (isCount(output)) {
                    places.add(Integer.valueOf(-1));
                } else if (isList(output)) {
                    places.add(Integer.valueOf(-2 - listed((AggregateExpression) output, rows)));
                } else {
                    places.add(Integer.valueOf(stay.size()));
                    stay.add(alias((Expression) output.transform(new Windowed(this, rows, grouping)), "__of" + stay.size()));
                }
            }
            for (int i = 0; i < places.size(); i++) {
                int place = ((Integer) places.get(i)).intValue();
                places.set(i, Integer.valueOf(place < 0 ? stay.size() - 1 - place : place));
            }
        }

        List sent() {
            List found = new ArrayList(stay);
            found.addAll(fields);
            return found;
        }

        String step() {
            List at = new ArrayList();
            for (int i = 0; i < keys.size(); i++) {
                at.add(Integer.valueOf(begin + i));
            }
            return "[\"group\", " + stay.size() + ", " + at + ", " + lists + "]";
        }

        /** Which of the lists it is. */
        private int listed(AggregateExpression one, List rows) {
            for (int i = 0; i < listed.size(); i++) {
                if (isSame(one, (Expression) listed.get(i))) {
                    return i;
                }
            }
            Expression row = (Expression) list(one.aggregateFunction().children()).get(0);
            Expression filter = one.filter().isDefined() ? (Expression) one.filter().get() : null;
            StringBuilder told = new StringBuilder("[{");
            StructField[] parts = ((StructType) row.dataType()).fields();
            for (int i = 0; i < parts.length; i++) {
                Expression part = row instanceof CreateNamedStruct
                    ? (Expression) list(((CreateNamedStruct) row).valExprs()).get(i)
                    : new GetStructField(row, i, scala.Option.empty());
                told.append(i == 0 ? "\"" : ", \"").append(parts[i].name()).append("\": ").append(field(part, filter, rows));
            }
            if (!(row instanceof CreateNamedStruct)) {
                filter = filter == null ? new IsNotNull(row) : new And(filter, new IsNotNull(row));
            }
            int there = filter == null ? 0 : field(new Literal(Boolean.TRUE, BooleanType$.MODULE$), filter, rows);
            lists.add(told.append("}, ").append(filter == null && !keys.isEmpty() ? "null" : "" + there).append("]"));
            listed.add(one);
            return lists.size() - 1;
        }

        /** The column of the rows that has a value; where the filter is not true it is not computed. */
        private int field(Expression one, Expression filter, List rows) {
            if (filter != null && !(one instanceof Attribute)) {
                one = new If(filter, one, new Literal(null, one.dataType()));
            }
            int at = -1;
            for (int i = 0; i < rows.size() && at < 0; i++) {
                Expression other = value((Expression) rows.get(i));
                at = one.deterministic() && one.semanticEquals(other) ? fields.indexOf(attribute(rows, i)) : -1;
            }
            if (at < 0) {
                at = fields.size();
                rows.add(alias(one, "__field" + at));
                fields.add(attribute(rows, rows.size() - 1));
            }
            return at;
        }

        private static Attribute attribute(List rows, int at) {
            return ((NamedExpression) rows.get(at)).toAttribute().withNullability(true);
        }

        /** The column in which a window has the value of a whole group. */
        Attribute windowed(AggregateExpression one, List rows) {
            for (int i = 0; i < windowed.size(); i++) {
                if (one.semanticEquals((Expression) windowed.get(i))) {
                    return ((NamedExpression) windows.get(i)).toAttribute();
                }
            }
            windowed.add(one);
            Iterator each = list(one.references().toSeq()).iterator();
            while (each.hasNext()) {
                Attribute read = (Attribute) each.next();
                boolean there = false;
                for (int i = 0; i < rows.size() && !there; i++) {
                    there = ((NamedExpression) rows.get(i)).exprId().equals(read.exprId());
                }
                if (!there) {
                    rows.add(read);
                }
            }
            WindowFrame frame = new SpecifiedWindowFrame(RowFrame$.MODULE$, UnboundedPreceding$.MODULE$,
                UnboundedFollowing$.MODULE$);
            WindowSpecDefinition all = new WindowSpecDefinition(seq(keys), empty(), frame);
            Alias column = alias(new WindowExpression(filtered(one), all), "__window" + windows.size());
            windows.add(column);
            return column.toAttribute();
        }

        /** Windows have no FILTER: what it leaves out is NULL, which no such aggregate takes into account. */
        private Expression filtered(AggregateExpression one) {
            List conditions = new ArrayList();
            if (one.filter().isDefined()) {
                conditions.add(one.filter().get());
            }
            if (keys.isEmpty()) {
                conditions.add(real);
            }
            if (conditions.isEmpty()) {
                return one;
            }
            Expression of = (Expression) list(one.aggregateFunction().children()).get(0);
            List wanted = new ArrayList();
            wanted.add(new If(anded(conditions), of, new Literal(null, of.dataType())));
            Expression function = (Expression) one.aggregateFunction().withNewChildren(seq(wanted));
            return new AggregateExpression((AggregateFunction) function, one.mode(), false, scala.Option.empty(),
                one.resultId());
        }
    }

    /** Keys, and aggregates as the columns of windows. */
    private static class Windowed extends scala.runtime.AbstractPartialFunction {
        private final Groups groups;
        private final List rows;
        private final List grouping;

        Windowed(Groups groups, List rows, List grouping) {
            this.groups = groups;
            this.rows = rows;
            this.grouping = grouping;
        }

        public boolean isDefinedAt(Object node) {
            return node instanceof AggregateExpression || keyAt((Expression) node, grouping) >= 0;
        }

        public Object applyOrElse(Object node, scala.Function1 other) {
            if (node instanceof AggregateExpression) {
                return groups.windowed((AggregateExpression) node, rows);
            }
            int key = keyAt((Expression) node, grouping);
            return key >= 0 ? groups.keys.get(key) : other.apply(node);
        }
    }

    /** Attributes as other expressions. */
    private static class Swapped extends scala.runtime.AbstractPartialFunction {
        private final Map others;

        Swapped(Map others) {
            this.others = others;
        }

        public boolean isDefinedAt(Object node) {
            return node instanceof Attribute && others.containsKey(((Attribute) node).exprId());
        }

        public Object applyOrElse(Object node, scala.Function1 other) {
            return isDefinedAt(node) ? others.get(((Attribute) node).exprId()) : other.apply(node);
        }
    }

    private static class Fields extends scala.runtime.AbstractPartialFunction {
        private final Map fields;

        Fields(Map fields) {
            this.fields = fields;
        }

        private Object found(Object node) {
            if (!(node instanceof GetStructField) || !(((GetStructField) node).child() instanceof Attribute)) {
                return null;
            }
            GetStructField field = (GetStructField) node;
            List parts = (List) fields.get(((Attribute) field.child()).exprId());
            return parts == null ? null : parts.get(field.ordinal());
        }

        public boolean isDefinedAt(Object node) {
            return found(node) != null;
        }

        public Object applyOrElse(Object node, scala.Function1 other) {
            Object made = found(node);
            return made == null ? other.apply(node) : made;
        }
    }

    /** Whether the worker can make the lists of these groups: there is one, and all else is one value of each group. */
    private static boolean isGrouped(List keys, List outputs) {
        for (int i = 0; i < keys.size(); i++) {
            if (!travels(((Expression) keys.get(i)).dataType())) {
                return false;
            }
        }
        boolean lists = false;
        for (int i = 0; i < outputs.size(); i++) {
            Expression one = value((Expression) outputs.get(i));
            lists |= isList(one);
            if (!isList(one) && !isCount(one) && !isOfGroup(one, keys)) {
                return false;
            }
        }
        return lists;
    }

    /** Types of keys that Spark sorts by as fast as by any number. */
    private static final Set NUMBERS = new HashSet(java.util.Arrays.asList(new Object[] {"byte", "short", "integer",
        "long", "date", "timestamp", "timestamp_ntz"}));

    /** Whether keys and windows can say it: aggregates of the rows of a group, and nothing that is read beside them. */
    private static boolean isOfGroup(Expression one, List keys) {
        if (keyAt(one, keys) >= 0) {
            return true;
        }
        if (one instanceof AggregateExpression) {
            AggregateExpression of = (AggregateExpression) one;
            boolean all = of.filter().isEmpty() && !keys.isEmpty();
            return of.aggregateFunction() instanceof DeclarativeAggregate && !of.isDistinct()
                && (all || list(of.aggregateFunction().children()).size() == 1);
        }
        Iterator each = list(one.children()).iterator();
        boolean of = !(one instanceof Attribute) && one.deterministic();
        while (of && each.hasNext()) {
            of = isOfGroup((Expression) each.next(), keys);
        }
        return of;
    }

    private static boolean isList(Expression one) {
        if (!(one instanceof AggregateExpression)) {
            return false;
        }
        AggregateExpression list = (AggregateExpression) one;
        return list.aggregateFunction() instanceof CollectList && !list.isDistinct() && travels(list.dataType())
            && ((ArrayType) list.dataType()).elementType() instanceof StructType;
    }

    private static boolean isCount(Expression one) {
        if (!(one instanceof AggregateExpression)) {
            return false;
        }
        AggregateExpression count = (AggregateExpression) one;
        List counted = list(count.aggregateFunction().children());
        return count.aggregateFunction() instanceof Count && !count.isDistinct() && count.filter().isEmpty()
            && counted.size() == 1 && counted.get(0) instanceof Literal && ((Literal) counted.get(0)).value() != null;
    }

    private static int keyAt(Expression one, List keys) {
        for (int i = 0; i < keys.size(); i++) {
            if (one.semanticEquals((Expression) keys.get(i))) {
                return i;
            }
        }
        return -1;
    }

    /** Of an aggregate's outputs those that another one before them is too. */
    private static Map repeated(LogicalPlan plan) {
        Map found = new HashMap();
        List outputs = plan instanceof Aggregate ? list(((Aggregate) plan).aggregateExpressions()) : new ArrayList();
        for (int i = 0; i < outputs.size(); i++) {
            NamedExpression one = (NamedExpression) outputs.get(i);
            for (int j = 0; j < i && !found.containsKey(one.exprId()); j++) {
                if (isSame(value((Expression) one), value((Expression) outputs.get(j)))) {
                    found.put(one.exprId(), ((NamedExpression) outputs.get(j)).toAttribute());
                }
            }
        }
        return found;
    }

    /** Whether two aggregates are one. Spark takes none of lists for another, whose order may differ. */
    private static boolean isSame(Expression one, Expression other) {
        Iterator each = list(one.children()).iterator();
        while (each.hasNext()) {
            Iterator inner = list(((Expression) each.next()).children()).iterator();
            while (inner.hasNext()) {
                if (!((Expression) inner.next()).deterministic()) {
                    return false;
                }
            }
        }
        return one instanceof AggregateExpression && one.canonicalized().equals(other.canonicalized());
    }

    private static boolean isIt(Expression one, Attribute attribute) {
        return one instanceof Attribute && ((Attribute) one).exprId().equals(attribute.exprId());
    }

    private static boolean onlyNames(List all) {
        List values = new ArrayList();
        for (int i = 0; i < all.size(); i++) {
            values.add(value((Expression) all.get(i)));
        }
        return onlyAttributes(values);
    }

    private static boolean onlyAttributes(List all) {
        Iterator each = all.iterator();
        while (each.hasNext()) {
            if (!(each.next() instanceof Attribute)) {
                return false;
            }
        }
        return true;
    }

    private static List conjuncts(Expression condition, List found) {
        if (condition instanceof And) {
            conjuncts(((And) condition).left(), found);
            conjuncts(((And) condition).right(), found);
        } else {
            found.add(condition);
        }
        return found;
    }

    private static Expression anded(List parts) {
        Expression all = (Expression) parts.get(0);
        for (int i = 1; i < parts.size(); i++) {
            all = new And(all, (Expression) parts.get(i));
        }
        return all;
    }
}
