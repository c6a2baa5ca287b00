@file:JvmName("LagerKt")

package lager.bestand

import java.util.concurrent.ConcurrentHashMap
import kotlin.math.*
import lager.basis.Basis as Grund

/** Largest number of articles. */
const val MAX_ITEMS = 1_000
private val cache = ConcurrentHashMap<String, Artikel>()
var String.größe: Int
    get() = length
    set(value) { println(value) }

typealias Handler<T> = (T) -> Unit

enum class Zustand(val code: Int) : Coded {
    NEU(0),
    GEPRÜFT(1) {
        override fun next() = NEU
    };

    abstract fun next(): Zustand
}

sealed interface Ereignis {
    data class Neu(val artikel: Artikel, val when_: Long) : Ereignis
    object Leer : Ereignis
}

/**
 * Keeps articles by key. Thread safe.
 */
@Serializable
@Suppress("unused")
abstract class Store<K : Comparable<K>, out V>(
    private val name: String,
    protected var limit: Int = MAX_ITEMS,
    seed: Long,
) : Grund(name), Repository<K, V> where V : Any {

    private val items: MutableMap<K, V> = mutableMapOf()
    lateinit var state: Zustand
    val count: Int by lazy { items.size }
    val (a, b) = 1 to 2

    init {
        require(limit > 0) { "limit" }
    }

    constructor(name: String) : this(name, 10, 0L) {
        println(name)
    }

    /** Finds one article. */
    @Throws(IOException::class)
    override fun find(key: K): V? = items[key]

    fun find(key: K, fallback: @UnsafeVariance V): V {
        return items.getOrDefault(key, fallback)
    }

    suspend inline fun <reified R> mapAll(crossinline f: (V) -> R): List<R> {
        fun hilfe(n: Int) = max(n, 0)
        val found = ArrayList<R>(hilfe(count))
        items.values.forEach { found.add(f(it)) }
        return found
    }

    internal abstract fun räume()

    operator fun plus(other: Store<K, @UnsafeVariance V>) = this

    inner class Knoten(val next: Knoten?) {
        fun `hat nachfolger`(): Boolean = next != null
    }

    companion object Fabrik : Factory<Any> {
        @JvmStatic
        fun öffne(path: String): Any = Store::class
    }
}

object Lager : Repository<String, Artikel> by Delegat() {
    val version = "1.2.0"
}

annotation class Geprüft(val by: String = "")

fun interface Prüfer {
    fun prüfe(a: Artikel): Boolean
}

fun <T> List<T>.zweites(): T? = getOrNull(1)

fun main(args: Array<String>) {
    Lager.find(args.first())?.let(::println)
}
