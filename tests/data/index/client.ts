import axios, { AxiosInstance, AxiosRequestConfig } from "axios";
import { Article, ArticleId, Order } from "./warehouse";

export type Method = "GET" | "POST" | "PUT" | "DELETE";
export type Query = Record<string, string | number | undefined>;

export interface ClientOptions {
  baseUrl: string;
  token?: string;
  timeoutMs: number;
  retries: number;
  headers: Record<string, string>;
  onError?(error: ApiError): void;
}

export interface Page<T> {
  items: T[];
  next?: string;
  total: number;
}

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail?: string;
  instance?: string;
}

interface Pending<T> {
  resolve(value: T): void;
  reject(reason: unknown): void;
  startedAt: number;
}

export const DEFAULTS: ClientOptions = {
  baseUrl: "http://localhost:8080",
  timeoutMs: 5_000,
  retries: 2,
  headers: {},
};

const RETRYABLE = new Set([408, 429, 500, 502, 503, 504]);

/** An answer that says no. */
export class ApiError extends Error {
  readonly status: number;
  readonly problem?: Problem;

  constructor(status: number, problem?: Problem) {
    super(problem?.title ?? `HTTP ${status}`);
    this.status = status;
    this.problem = problem;
  }

  get retryable(): boolean {
    return RETRYABLE.has(this.status);
  }

  toJSON(): object {
    return { status: this.status, ...this.problem };
  }
}

export class TimeoutError extends ApiError {
  constructor(readonly afterMs: number) {
    super(408);
  }
}

/** Waits, with a bound. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

function toSearch(query: Query): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
  return new URLSearchParams(pairs as [string, string][]).toString();
}

export abstract class BaseClient {
  protected readonly http: AxiosInstance;
  private readonly pending = new Map<string, Pending<unknown>>();
  private static count = 0;

  constructor(protected readonly options: ClientOptions = DEFAULTS) {
    BaseClient.count += 1;
    this.http = axios.create({ baseURL: options.baseUrl, timeout: options.timeoutMs });
  }

  static get instances(): number {
    return BaseClient.count;
  }

  protected async send<T>(method: Method, url: string, body?: unknown): Promise<T> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.once<T>({ method, url, data: body });
      } catch (error) {
        if (!this.mayRetry(error, attempt)) throw error;
        await sleep(this.backoff(attempt));
      }
    }
  }

  protected get<T>(url: string, query: Query = {}): Promise<T> {
    return this.send<T>("GET", `${url}?${toSearch(query)}`);
  }

  private async once<T>(config: AxiosRequestConfig): Promise<T> {
    const answer = await this.http.request<T>(config);
    return answer.data;
  }

  private mayRetry(error: unknown, attempt: number): boolean {
    return attempt < this.options.retries && error instanceof ApiError && error.retryable;
  }

  private backoff(attempt: number): number {
    return Math.min(1_000, 50 * 2 ** attempt);
  }

  abstract close(): Promise<void>;
}

export class ArticleClient extends BaseClient {
  async find(id: ArticleId): Promise<Article> {
    return this.get<Article>(`/articles/${id}`);
  }

  async search(text: string, limit = 20): Promise<Page<Article>> {
    return this.get<Page<Article>>("/articles", { text, limit });
  }

  async save(article: Article): Promise<void> {
    await this.send<void>("PUT", `/articles/${article.id}`, article);
  }

  async *pages(text: string): AsyncGenerator<Article[]> {
    let page = await this.search(text);
    yield page.items;
    while (page.next !== undefined) {
      page = await this.get<Page<Article>>(page.next);
      yield page.items;
    }
  }

  async close(): Promise<void> {}
}

export class OrderClient extends BaseClient {
  private last?: Order;

  place = async (order: Order): Promise<Order> => {
    this.last = await this.send<Order>("POST", "/orders", order);
    return this.last;
  };

  cancel(id: string): Promise<void>;
  cancel(order: Order): Promise<void>;
  async cancel(target: string | Order): Promise<void> {
    const id = typeof target === "string" ? target : target.id;
    await this.send<void>("DELETE", `/orders/${id}`);
  }

  async close(): Promise<void> {
    this.last = undefined;
  }
}
