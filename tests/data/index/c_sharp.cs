using System;
using System.Collections.Generic;
using Json = System.Text.Json;
using static System.Math;
global using System.Linq;

namespace Lager.Bestand
{
    /// <summary>Tells listeners about a change. Called once per batch.</summary>
    public delegate void ChangeHandler<T>(object sender, T change) where T : struct;

    [Flags]
    public enum Zustand : byte
    {
        Neu = 0,
        Geprüft = 1,
        Gesperrt = Geprüft << 1,
    }

    /// <summary>
    /// Stores articles by key. Thread safe.
    /// </summary>
    public interface IStore<in TKey, TValue> : IDisposable where TKey : notnull
    {
        int Count { get; }
        TValue Find(TKey key);
        event EventHandler Changed;
    }

    [Serializable, Obsolete("use Warehouse")]
    public abstract partial class Store<TKey, TValue> : Base, IStore<TKey, TValue>
        where TKey : notnull, IComparable<TKey>
    {
        public const int MaxItems = 1_000;
        private static readonly Dictionary<TKey, TValue> cache = new();
        protected int größe, used;

        public int Count => cache.Count;
        public string Naam { get; private set; } = "";
        public TValue this[TKey key] { get => Find(key); }
        public event EventHandler Changed;

        /* Makes an empty store. */
        public Store(string name) : base(name)
        {
            Naam = name ?? throw new ArgumentNullException(nameof(name));
        }

        ~Store() => Dispose(false);

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public virtual TValue Find(TKey key)
        {
            return cache[key];
        }

        public TValue Find(TKey key, TValue fallback) => cache.TryGetValue(key, out var v) ? v : fallback;

        public static Store<TKey, TValue> operator +(Store<TKey, TValue> a, TValue b) => a;

        internal async Task<List<TResult>> MapAsync<TResult>(Func<TValue, TResult> f)
        {
            int Zähle(int n) { return Max(n, 0); }
            var found = new List<TResult>(Zähle(Count));
            foreach (var item in cache.Values) found.Add(f(item));
            await Task.Yield();
            return found;
        }

        private sealed class Node
        {
            public Node? Next;

            public struct Key { public int Hash; }
        }

        protected abstract void Dispose(bool disposing);
    }

    public record Artikel(string Größe, decimal Preis) : IComparable<Artikel>
    {
        public int CompareTo(Artikel? other) => Preis.CompareTo(other?.Preis);
    }

    public readonly record struct Point(int X, int Y);

    internal static class Extensions
    {
        public static bool IstLeer(this string s) => string.IsNullOrEmpty(s);
    }
}
