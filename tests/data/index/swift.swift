import Foundation
@testable import LagerKern
import class UIKit.UIView

/// Largest number of articles.
public let maxItems = 1_000
private var cache: [String: Artikel] = [:]

typealias Handler<T> = (T) -> Void

/// Can be stored. Nothing more.
public protocol Speicherbar: AnyObject, Codable {
    associatedtype Key: Hashable
    var größe: Int { get }
    func speichere(_ pfad: String) throws -> Bool
    init(name: String)
}

@frozen
public enum Zustand: Int, CaseIterable {
    case neu = 0
    case geprüft, gesperrt
    indirect case kette(Zustand, tiefe: Int)

    func weiter() -> Zustand { return .neu }
}

struct Artikel: Codable, Comparable {
    let name: String
    var preis: Decimal = 0
    static func < (links: Artikel, rechts: Artikel) -> Bool { links.preis < rechts.preis }
}

/**
 Keeps articles by key. Thread safe.
 */
@MainActor
@available(iOS 15, *)
open class Store<Key: Hashable, Value>: Basis, Repository where Value: Codable {
    public static let shared = Store<String, Int>(name: "x")
    private(set) var items: [Key: Value] = [:]
    @Published var zustand: Zustand
    lazy var count: Int = items.count
    let (a, b) = (1, 2)

    public required init(name: String) {
        self.zustand = .neu
        super.init(name: name)
    }

    convenience init?(pfad: String, _ mode: Int = 0) {
        self.init(name: pfad)
    }

    deinit { cache.removeAll() }

    subscript(key: Key) -> Value? {
        get { items[key] }
    }

    /// Finds one article.
    @discardableResult
    override public func find(_ key: Key) -> Value? {
        return items[key]
    }

    func find(_ key: Key, fallback: @autoclosure () -> Value) -> Value {
        func hilfe(_ n: Int) -> Int { max(n, 0) }
        return items[key] ?? fallback()
    }

    fileprivate func mapAll<R>(_ f: (Value) async throws -> R) async rethrows -> [R] {
        var found = [R]()
        for value in items.values { found.append(try await f(value)) }
        return found
    }

    final class Knoten {
        weak var next: Knoten?

        enum Schlüssel { case leer }
    }
}

extension Store: CustomStringConvertible {
    public var description: String { "Store(\(count))" }
    func räume() { items.removeAll() }
}

actor Zähler {
    private var n = 0
    func weiter() -> Int { n += 1; return n }
}

infix operator +++
func +++ (a: Int, b: Int) -> Int { a + b }

func starte<T>(_ args: [T]) where T: StringProtocol {
    let store = Store<String, Int>(name: "lager")
    print(store.find("ä") as Any)
}

public struct Stand {
    public fileprivate(set) var wert = 0
}
