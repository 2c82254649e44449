package ondatra;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A rule of the optimizer by which DuckDB is asked otherwise than by functions of Arrow arrays. All is public: the
 *  rules are of another class loader. */
public abstract class Asking extends Rule {

    public static final int SCALAR = 250;
    public static final int MAP = 207;
    public static final Set SIMPLE = new HashSet(java.util.Arrays.asList(new Object[] {"boolean", "byte", "short",
        "integer", "long", "float", "double", "string", "binary", "date", "timestamp", "timestamp_ntz"}));

    public final Map calls = new ConcurrentHashMap();
    private final byte[] before;
    private final byte[] after;
    private volatile String failed = "";

    /** A pickled function, in two parts: between them goes, as bytes, what it shall do. */
    public Asking(byte[] before, byte[] after) {
        this.before = before;
        this.after = after;
    }

    /** The plan, or another one with the same rows. */
    public abstract LogicalPlan rewritten(LogicalPlan plan);

    /** What a function of the session computes, as JSON. */
    public void define(String name, String call) {
        calls.put(name, call);
    }

    /** Why this rule left a plan as it was, if it did since this was asked last. */
    public String failed() {
        String said = failed;
        failed = "";
        return said;
    }

    public TreeNode apply(TreeNode plan) {
        try {
            return rewritten((LogicalPlan) plan);
        } catch (Throwable error) {
            failed = error.toString();
            return plan;
        }
    }

    /** The pickled function with what it shall do. */
    private byte[] command(String told) {
        byte[] text = told.getBytes(StandardCharsets.UTF_8);
        java.nio.ByteBuffer out = java.nio.ByteBuffer.allocate(before.length + 5 + text.length + after.length);
        out.order(java.nio.ByteOrder.LITTLE_ENDIAN);
        out.put(before).put((byte) 'B').putInt(text.length).put(text).put(after);
        return out.array();
    }

    /** The rows of a plan through a worker: calls by their names, steps and what comes back as `duck_task.passer` is
     *  told, by the environment of a function that is like it. */
    public LogicalPlan passed(Set names, List steps, List back, SimplePythonFunction like, List output,
            LogicalPlan child, boolean deterministic) {
        StringBuilder told = new StringBuilder("{\"calls\": {");
        Iterator each = names.iterator();
        while (each.hasNext()) {
            Object name = each.next();
            told.append("\"" + name + "\": " + calls.get(name)).append(each.hasNext() ? ", " : "");
        }
        told.append("}, \"steps\": ").append(steps).append(", \"back\": ").append(back).append("}");
        PythonFunction function = new SimplePythonFunction(command(told.toString()), like.envVars(),
            like.pythonIncludes(), like.pythonExec(), like.pythonVer(), like.broadcastVars(), like.accumulator());
        StructField[] kinds = new StructField[output.size()];
        for (int i = 0; i < kinds.length; i++) {
            Attribute column = (Attribute) output.get(i);
            kinds[i] = new StructField(column.name(), column.dataType(), true, Metadata.empty());
        }
        PythonUDF udf = new PythonUDF("duckdb", function, new StructType(kinds), child.output().toSeq(), MAP,
            deterministic, id());
        return new MapInArrow(udf, seq(output), child, false, scala.Option.empty());
    }

    public static Expression value(Expression one) {
        return one instanceof Alias ? ((Alias) one).child() : one;
    }

    public static Alias alias(Expression one, String name) {
        return new Alias(one, name, id(), empty(), scala.Option.empty(), empty());
    }

    public static SortOrder ascending(Expression one) {
        return new SortOrder(one, Ascending$.MODULE$, NullsFirst$.MODULE$, empty());
    }

    /** Whether a value comes back from Arrow as it was. */
    public static boolean travels(DataType kind) {
        if (kind instanceof StructType) {
            StructField[] parts = ((StructType) kind).fields();
            boolean all = true;
            for (int i = 0; i < parts.length; i++) {
                all &= travels(parts[i].dataType());
            }
            return all;
        }
        if (kind instanceof ArrayType) {
            return travels(((ArrayType) kind).elementType());
        }
        if (kind instanceof MapType) {
            return travels(((MapType) kind).keyType()) && travels(((MapType) kind).valueType());
        }
        String name = kind.typeName();
        return name.startsWith("decimal") || name.startsWith("time(") || SIMPLE.contains(name);
    }

    /** The columns that an expression reads, or that stand in a list. */
    public static Set ids(Object of) {
        Object read = of instanceof Expression ? ((Expression) of).references().toSeq() : of;
        Set found = new HashSet();
        Iterator each = (read instanceof List ? (List) read : list(read)).iterator();
        while (each.hasNext()) {
            Object one = each.next();
            if (one instanceof Attribute) {
                found.add(((Attribute) one).exprId());
            }
        }
        return found;
    }

    public static org.apache.spark.sql.catalyst.expressions.ExprId id() {
        return org.apache.spark.sql.catalyst.expressions.NamedExpression$.MODULE$.newExprId();
    }

    public static scala.collection.immutable.Seq empty() {
        return seq(new ArrayList());
    }

    public static scala.collection.immutable.Seq seq(List items) {
        return (scala.collection.immutable.Seq) scala.jdk.javaapi.CollectionConverters.asScala((Iterable) items).toSeq();
    }

    public static List list(Object items) {
        List found = new ArrayList();
        scala.collection.Iterator each = ((scala.collection.Iterable) items).iterator();
        while (each.hasNext()) {
            found.add(each.next());
        }
        return found;
    }
}
