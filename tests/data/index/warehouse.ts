/** Articles, orders and their events: the model of the warehouse. */
import { EventEmitter } from "node:events";
import type { Logger } from "./logger";
import * as path from "path";
import defaults, { type Clock, createClock as makeClock } from "../clock";
export { formatMoney, parseMoney as readMoney } from "./money";
export * from "./errors";

const legacy = require("./legacy");

export type Id<T extends string> = string & { readonly __brand: T };
export type ArticleId = Id<"article">;
export type OrderId = Id<"order">;
export type Handler<E, R = void> = (event: E) => Promise<R> | R;
type Internal = { seen: Set<string>; touch(id: ArticleId): void };

export const enum Status {
  New,
  Packed = "packed",
  Sent = "sent",
  Returned = 1 << 3,
}

enum Größe {
  Klein,
  Mittel,
  Groß,
}

/** What can be stored. Every article has a price. */
export interface Article {
  readonly id: ArticleId;
  name: string;
  /** In cents. */
  price: number;
  tags?: string[];
  größe: Größe;
  dimensions: { width: number; height: number };
  describe(locale: string): string;
  clone(): Article;
}

export interface Perishable extends Article {
  bestBefore: Date;
  isFresh(now: Date): boolean;
}

interface Line {
  article: Article;
  count: number;
  discount?: number;
}

export interface Order<L extends Line = Line> {
  id: OrderId;
  lines: readonly L[];
  status: Status;
  total(): number;
  [extra: string]: unknown;
}

export interface Repository<T, K = string> {
  get(key: K): Promise<T | undefined>;
  put(value: T): Promise<void>;
  remove(key: K): Promise<boolean>;
  all(filter?: (value: T) => boolean): AsyncIterable<T>;
  readonly size: number;
}

export function sum(values: number[]): number;
export function sum(values: Iterable<number>): number;
export function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

// Rounds to whole cents. Half goes up.
export const round = (cents: number): number => Math.floor(cents + 0.5);
export const VAT = 0.19, REDUCED_VAT = 0.07;
const cache: Map<ArticleId, Article> = new Map();
let counter = 0;
var oldStyle = legacy.value;

export let current: Order | undefined;

function nextId<T extends string>(prefix: T): Id<T> {
  counter += 1;
  const format = (n: number): string => n.toString(36);
  function pad(text: string): string {
    return text.padStart(8, "0");
  }
  return (prefix + pad(format(counter))) as Id<T>;
}

export async function* readLines(file: string): AsyncGenerator<string> {
  for (const line of file.split("\n")) yield line.trim();
}

export function logged(target: object, key: string): void {
  defaults.log(target, key);
}

export function injectable(name?: string) {
  return <C extends new (...args: never[]) => object>(base: C): C => base;
}

/**
 * Keeps things in memory.
 *
 * @typeParam T what is kept
 */
@injectable("memory")
export abstract class MemoryRepository<T extends { id: K }, K extends string> implements Repository<T, K> {
  static readonly instances = new Set<string>();
  protected readonly items = new Map<K, T>();
  private listeners: Array<Handler<T>> = [];
  #dirty = false;
  declare label: string;

  constructor(protected readonly logger: Logger, private clock: Clock = makeClock()) {
    MemoryRepository.instances.add(this.constructor.name);
  }

  get size(): number {
    return this.items.size;
  }

  set dirty(value: boolean) {
    this.#dirty = value;
  }

  async get(key: K): Promise<T | undefined> {
    return this.items.get(key);
  }

  @logged
  async put(value: T): Promise<void> {
    this.items.set(value.id, value);
    await this.notify(value);
  }

  async remove(key: K): Promise<boolean> {
    return this.items.delete(key);
  }

  async *all(filter: (value: T) => boolean = () => true): AsyncIterable<T> {
    for (const item of this.items.values()) {
      if (filter(item)) yield item;
    }
  }

  protected abstract check(value: T): void;

  abstract get kind(): string;

  on(handler: Handler<T>): () => void;
  on(handler: Handler<T>, once: boolean): () => void;
  on(handler: Handler<T>, once = false): () => void {
    this.listeners.push(handler);
    return () => this.off(handler);
  }

  private off = (handler: Handler<T>): void => {
    this.listeners = this.listeners.filter((other) => other !== handler);
  };

  private async notify(value: T): Promise<void> {
    for (const listener of this.listeners) await listener(value);
  }

  #reset(): void {
    this.items.clear();
  }
}

export class ArticleRepository extends MemoryRepository<Article, ArticleId> {
  override readonly label = "articles";

  protected check(article: Article): void {
    if (article.price < 0) throw new RangeError(article.name);
  }

  get kind(): string {
    return "article";
  }

  static größteZuerst(articles: Article[]): Article[] {
    return [...articles].sort((a, b) => b.größe - a.größe);
  }
}

class Cart extends EventEmitter {
  private lines: Line[] = [];
  readonly createdAt = new Date();
  owner?: string;

  add(article: Article, count = 1): this {
    this.lines.push({ article, count });
    this.emit("changed", this);
    return this;
  }

  total(): number {
    return round(sum(this.lines.map((line) => line.article.price * line.count)));
  }

  checkout = async (): Promise<Order> => {
    return { id: nextId("order") as OrderId, lines: this.lines, status: Status.New, total: () => this.total() };
  };
}

export default class Warehouse {
  public static readonly defaultName: string = "main";
  private readonly carts = new WeakMap<object, Cart>();
  protected name: string;
  readonly root = path.resolve(".");

  constructor(public readonly articles: ArticleRepository, name?: string) {
    this.name = name ?? Warehouse.defaultName;
  }

  cartOf(owner: object): Cart {
    let cart = this.carts.get(owner);
    if (cart === undefined) {
      cart = new Cart();
      this.carts.set(owner, cart);
    }
    return cart;
  }

  "quoted-name"(): void {}

  static create(logger: Logger): Warehouse {
    return new Warehouse(new ArticleRepository(logger));
  }
}

export namespace Shipping {
  export interface Carrier {
    name: string;
    price(order: Order): number;
  }

  export class Parcel {
    constructor(readonly weight: number, readonly carrier: Carrier) {}

    label(): string {
      return `${this.carrier.name}: ${this.weight}`;
    }
  }

  const limit = 31_500;

  export function fits(parcel: Parcel): boolean {
    return parcel.weight <= limit;
  }

  export namespace Zones {
    export enum Zone {
      Inland,
      Europe,
      World,
    }

    export function zoneOf(country: string): Zone {
      return country === "DE" ? Zone.Inland : Zone.World;
    }
  }
}

declare module "legacy" {
  export function open(name: string): number;
  export const version: string;
  interface Options {
    strict: boolean;
  }
}

declare function externalHook(name: string): void;
declare const BUILD: string;

export type Change =
  | { kind: "added"; article: Article }
  | { kind: "removed"; id: ArticleId };

export type Point = {
  x: number;
  y: number;
  move(dx: number, dy: number): Point;
};

export function isPerishable(article: Article): article is Perishable {
  return "bestBefore" in article;
}

export const formatters: Record<string, (value: number) => string> = {
  plain: (value) => value.toString(),
  euro: (value) => `${(value / 100).toFixed(2)} €`,
};

const Box = class<T> {
  value?: T;
  open(): T | undefined {
    return this.value;
  }
};

function collect(...articles: Article[]): Internal {
  class Local {
    field = 1;
  }
  void new Local();
  return { seen: new Set(articles.map((a) => a.id)), touch: (id) => void cache.delete(id) };
}

export { collect, Größe as Size, Cart };
