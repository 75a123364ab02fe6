import type { Clock } from "../core/clock.ts";
import type { Caller } from "../core/context.ts";
import type { MemoryBudget } from "../limits/memoryBudget.ts";
import type { DayBudget } from "../telemetry/dayBudgets.ts";
import type { VerifyLevel } from "../verification/verifier.ts";

export interface BatchOptions {
  readonly maxCalls: number;
}

/** The metric labels of a node, which are the fields of its log lines too. */
export interface NodeLabels {
  readonly chain: string;
  readonly node: string;
}

/** One configured node. */
export interface NodeConfig {
  readonly name: string;
  /** The operator of the node; default: host and port of `url`. */
  readonly origin?: string;
  readonly url: string;
  readonly wsUrl?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly requestsPerSecond?: number | undefined;
  /** The units that it may get on a day. Default: any number. */
  readonly budget?: Pick<DayBudget, "spend" | "isSpent"> | undefined;
  readonly concurrency?: number;
  /** The tier of the node. Default: 0, the first. */
  readonly priority?: number;
  /** The methods that the node may get, by name or by prefix (`debug_*`). Default: all methods. */
  readonly methods?: { readonly only?: readonly string[] | undefined; readonly never: readonly string[] };
  /** HTTP requests with several calls; default: MAX_BATCH_CALLS, without a wait. */
  readonly batch?: BatchOptions;
  /** Whether it gets no raw transactions that go to all nodes. Default: false. */
  readonly private?: boolean;
  /** Ranges of eth_getLogs in flight. Default: 1. */
  readonly logSpans?: number;
}

/** The default of the requests in flight. */
export const DEFAULT_CONCURRENCY = 256;
/** The default of the calls in one HTTP request. */
export const MAX_BATCH_CALLS = 50;
/** The default of the calls that wait for a node. */
export const MAX_WAITING_CALLS = 1_000;

/** What the transports of one chain's nodes share. */
export interface TransportOptions {
  /** The chain's name, for metrics and messages. */
  readonly chain: string;
  /** The clock of waits for the node. Default: the clock of the process. */
  readonly clock?: Clock | undefined;
  readonly breaker?: { readonly failures: number; readonly openMs: number };
  /** Calls of clients that may wait for the node. A further one is refused. Default: MAX_WAITING_CALLS. */
  readonly maxWaiting?: number;
  /** Default: any number. */
  readonly maxResponseBytes?: number;
  /** Counts the bytes of responses while they are received. Default: they are not counted. */
  readonly memory?: MemoryBudget | undefined;
  /** The metric label of a method, from a closed set; default: `other` for all. */
  readonly methodLabel?: (method: string) => string;
  /** The units that the provider bills for a call; default: none. */
  readonly unitsOf?: (method: string) => number;
  /** Called with each call to a node: who causes it, and its price. */
  readonly onCall?: ((caller: Caller | undefined, units: number) => void) | undefined;
  /** Whether a method may share an HTTP request to a node with others; default: none. */
  readonly isQuick?: (method: string) => boolean;
  /** The responses that are verified. Default: none. */
  readonly verify?: VerifyLevel;
}

/** Returns the name of a configured node: its own, or `node` with its position from 1. */
export const nodeName = ({ name }: { readonly name?: string | undefined }, index: number): string =>
  name ?? `node${index + 1}`;

export interface NodeUrl {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Path and query. They may contain a provider's API key. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Replaces the secrets of this endpoint in a text that may be logged or shown. */
  redact(text: string): string;
}

/** Shorter parts of a path or query are words such as `v2` or `mainnet`. Replacing them would make texts unreadable. */
const KEY_MIN_LENGTH = 12;
const CREDENTIAL_MIN_LENGTH = 4;

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** Splits a node's URL. User and password become a header, because URLs may be logged and headers are not. */
export const parseNodeUrl = (url: string, headers: Readonly<Record<string, string>> = {}): NodeUrl => {
  const { origin, username, password, pathname, search, searchParams } = new URL(url);
  const user = decoded(username);
  const pass = decoded(password);
  const authorization =
    username || password ? { authorization: `Basic ${Buffer.from(`${user}:${pass}`).toString("base64")}` } : {};
  const keys = [url, ...pathname.split("/"), ...searchParams.values()].filter(({ length }) => length >= KEY_MIN_LENGTH);
  const credentials = [
    ...[user, pass, username, password, ...Object.values(authorization)],
    ...Object.values(headers).flatMap((value) => [value, ...value.split(" ")]),
  ].filter(({ length }) => length >= CREDENTIAL_MIN_LENGTH);
  const secrets = [...keys, ...credentials].sort((a, b) => b.length - a.length);
  return {
    origin,
    path: pathname + search,
    headers: { ...authorization, ...headers },
    redact: (text) => secrets.reduce((clean, secret) => clean.replaceAll(secret, "[redacted]"), text),
  };
};
