package lager.bestand

import scala.collection.mutable
import java.util.{UUID, List => JList}
import lager.basis._

/** Can be stored. Nothing more. */
sealed trait Speicherbar[+A] extends Serializable {
  type Key
  val grenze: Int
  def speichere(pfad: String): Boolean
}

case class Artikel(name: String, größe: Int = 0) extends Ordered[Artikel] with Speicherbar[String] {
  type Key = UUID
  def compare(other: Artikel): Int = größe - other.größe
}

object Artikel {
  final val Max = 1000
  def apply(name: String): Artikel = new Artikel(name, Max)
  implicit val ordering: Ordering[Artikel] = Ordering.by(_.größe)
}

/**
 * Keeps articles by key. Thread safe.
 */
@SerialVersionUID(1L)
abstract class Store[K <: Comparable[K], V](private val name: String, var limit: Int = 10)(implicit ec: ExecutionContext)
    extends Basis(name)
    with Repository[K, V] {

  private val items = mutable.Map.empty[K, V]
  var zustand: Zustand = _
  lazy val (first, second) = (1, 2)

  def this(name: String) = this(name, 10)

  /** Finds one article. */
  @throws(classOf[java.io.IOException])
  override def find(key: K): Option[V] = items.get(key)

  def find(key: K, fallback: => V): V = {
    def hilfe(n: Int): Int = math.max(n, 0)
    items.getOrElse(key, fallback)
  }

  def mapAll[R](f: V => R)(using ord: Ordering[R]): List[R] =
    items.values.map(f).toList.sorted

  protected[lager] def räume(): Unit

  private[this] def +(other: Store[K, V]): Store[K, V] = this

  class Knoten(val next: Knoten) {
    object Leer
  }
}

enum Zustand(val code: Int) {
  case Neu extends Zustand(0)
  case Geprüft(by: String) extends Zustand(1)
  case Alt, Weg
}

given intOrd: Ordering[Int] with {
  def compare(a: Int, b: Int): Int = a - b
}

extension (s: String)
  def istLeer: Boolean = s.isEmpty

type Handler[T] = T => Unit

def starte(args: Array[String]): Unit = println(Artikel(args(0)).compare(null))
