package shop.sub;
import java.util.List;
import static java.lang.Math.*;
/**
 * An order of <b>things</b>. More.
 * @author x
 */
@Entity(name = "o")
public class Auftrag<T extends Comparable<T>> extends Basis<T> implements Serializable, Iface<T> {
    private final int größe = 1, zwei;
    public static final String NAME = "x";
    /** Makes one. */
    public Auftrag(int a) { super(a); }
    @Override @Deprecated
    public <R> R map(Function<T, R> f) throws IOException { return f.apply(new Ding<>()); }
    void map() { helper(); this.x.go(); }
    private static class Innen { enum Farbe { ROT, GRÜN { void x() {} }; void y() {} } }
    interface Hörer { void höre(String s); default void leer() {} int K = 1; }
    record Punkt(int x, int y) { Punkt { check(x); } static Punkt of() { return null; } }
    @interface Marke { String value() default ""; }
}
