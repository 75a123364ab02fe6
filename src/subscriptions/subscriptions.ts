import type { Context, InboundRequest, Subscriber } from "../core/context.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { type Data, type Hash, ZERO_HASH } from "../ethereum/hex.ts";
import type { LogFilter, LogFilterLimits } from "../ethereum/logFilter.ts";
import { type Call, paramsTextOf } from "../jsonrpc/call.ts";
import { CODES, invalidParams, overBudget, RpcError } from "../jsonrpc/rpcError.ts";
import type { MemoryBudget, MemoryUse } from "../limits/memoryBudget.ts";
import { EventHub, type EventHubOptions } from "./eventHub.ts";
import { type ParsedSubscription, parseSubscription, type SubscriptionRequest } from "./eventSubscribers.ts";
import { createSubscription, type Registration } from "./subscriber.ts";

/** Objects of a subscription in memory. Measured: 3,100 bytes, and 4,600 with one address. */
const SUBSCRIPTION_BYTES = 4_096;
/** An address, a topic or a transaction hash: its text, and its places in the index. Measured: 510 to 700 bytes. */
const VALUE_BYTES = 704;

/** One entry for all subscriptions of a client, because there are many of them. */
interface ClientEntry {
  readonly use: MemoryUse | undefined;
  bytes: number;
  subscriptions: number;
}

const valuesOf = ({ addresses, topics }: LogFilter): number =>
  topics.reduce((sum, { length }) => sum + length, addresses.length);

const valuesIn = (request: ParsedSubscription): number => {
  if ("hashes" in request) {
    return request.hashes.length;
  }
  return "filter" in request && request.filter ? valuesOf(request.filter) : 0;
};

const sizeInMemory = (request: ParsedSubscription): number => SUBSCRIPTION_BYTES + VALUE_BYTES * valuesIn(request);

/** Returns the bytes of the parameters. A transaction is sent, and only its hash is kept. */
const bytesOf = (call: Call, request: ParsedSubscription): number =>
  "raw" in request ? ZERO_HASH.length : paramsTextOf(call).length;

/** Counts the bytes of each client's subscriptions, over all its connections. */
class ClientBytes {
  readonly #maxBytes: number;
  readonly #memory: MemoryBudget | undefined;
  readonly #clients = new Map<string, ClientEntry>();

  constructor(maxBytes: number, memory: MemoryBudget | undefined) {
    this.#maxBytes = maxBytes;
    this.#memory = memory;
  }

  /** Adds the bytes of a subscription's parameters, and its size in memory. Throws RpcError, and adds nothing, above the limit. Returns the function that removes them. */
  take(clientId: string, call: Call, request: ParsedSubscription): () => void {
    const bytes = bytesOf(call, request);
    const size = sizeInMemory(request);
    const client = this.#clients.get(clientId) ?? {
      use: this.#memory?.open("subscriptions", clientId),
      bytes: 0,
      subscriptions: 0,
    };
    if (client.bytes + bytes > this.#maxBytes) {
      throw new RpcError(CODES.INVALID_REQUEST, `more than ${this.#maxBytes} bytes of subscriptions of one client`);
    }
    if (client.use?.tryAdd(size) === false) {
      throw overBudget();
    }
    client.bytes += bytes;
    client.subscriptions++;
    this.#clients.set(clientId, client);
    return () => this.#release(clientId, bytes, size);
  }

  #release(clientId: string, bytes: number, size: number): void {
    const client = this.#clients.get(clientId);
    if (client === undefined) {
      return;
    }
    client.use?.tryAdd(-size);
    client.bytes -= bytes;
    client.subscriptions--;
    if (client.subscriptions === 0) {
      this.#clients.delete(clientId);
    }
  }
}

export interface SubscriptionsOptions extends Omit<EventHubOptions, "onMissed"> {
  readonly heads: EventHubOptions["heads"] & {
    /** Marks the chain as in use, so that its heads are polled at the full rate. */
    markActive(): void;
  };
  readonly limits: LogFilterLimits;
  /** Limit of one connection. */
  readonly maxSubscriptions: number;
  /** Maximum of bytes of the parameters of one client's subscriptions. */
  readonly maxBytesPerClient: number;
  /** Counts the bytes of subscriptions. Default: they are not counted. */
  readonly memory?: MemoryBudget | undefined;
}

/** Shorter than the time after which a chain counts as idle. */
const MARK_ACTIVE_MS = 10_000;
const TRY_AGAIN_LATER = 1013;

const formatLocal = (value: unknown): RpcResponse => ({
  body: Buffer.from(JSON.stringify(value)),
  status: { hit: "local" },
});

/** Counts the subscriptions of each connection. Calls `markActive` regularly if there is one. */
class ActiveSubscribers {
  readonly #counts = new Map<Subscriber, number>();
  readonly #timer: NodeJS.Timeout;

  constructor(markActive: () => void) {
    this.#timer = setInterval(() => {
      if (this.#counts.size > 0) {
        markActive();
      }
    }, MARK_ACTIVE_MS);
    this.#timer.unref();
  }

  get connections(): readonly Subscriber[] {
    return [...this.#counts.keys()];
  }

  change(subscriber: Subscriber, by: 1 | -1): void {
    const count = (this.#counts.get(subscriber) ?? 0) + by;
    if (count > 0) {
      this.#counts.set(subscriber, count);
    } else {
      this.#counts.delete(subscriber);
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

/** Throws RpcError for a request over HTTP. */
const subscriberOf = ({ method }: Call, { received: { subscriber } }: InboundRequest): Subscriber => {
  if (subscriber === undefined) {
    throw new RpcError(CODES.METHOD_NOT_FOUND, `${method} needs a WebSocket connection`);
  }
  return subscriber;
};

/** Sends a raw transaction. Returns its hash, or rejects with RpcError. */
type Submit = (raw: Data) => Promise<Hash>;

/** Sends the transaction that a subscription is to, once the client has room for the subscription. */
const withHash = async (parsed: ParsedSubscription, submit: Submit): Promise<SubscriptionRequest> => {
  if (!("raw" in parsed)) {
    return parsed;
  }
  const { kind, raw, includesReorgs } = parsed;
  return { kind, includesReorgs, hash: await submit(raw) };
};

/** eth_subscribe and eth_unsubscribe on one chain. */
export class Subscriptions {
  readonly #options: SubscriptionsOptions;
  readonly #subscribers: ActiveSubscribers;
  readonly #events: EventHub;
  readonly #clientBytes: ClientBytes;

  constructor(options: SubscriptionsOptions) {
    this.#options = options;
    this.#subscribers = new ActiveSubscribers(() => options.heads.markActive());
    this.#events = new EventHub({ ...options, onMissed: (blocks) => this.#closeAll(blocks) });
    this.#clientBytes = new ClientBytes(options.maxBytesPerClient, options.memory);
  }

  /** Handles eth_subscribe. A client that requires proofs gets proven events alone. */
  async subscribe(call: Call, context: Context, submit: Submit): Promise<RpcResponse> {
    const { request: inbound, caller, behind, needs } = context;
    if (behind !== undefined) {
      throw new RpcError(
        CODES.INVALID_REQUEST,
        "a key with confirmations has no subscriptions, which follow the head: poll a filter instead",
      );
    }
    const { limits, maxSubscriptions } = this.#options;
    const subscriber = subscriberOf(call, inbound);
    const parsed = parseSubscription(call.params, limits);
    const { kind } = parsed;
    const { subscriptions } = subscriber;
    if (subscriptions.size >= maxSubscriptions) {
      throw new RpcError(CODES.INVALID_REQUEST, `more than ${maxSubscriptions} subscriptions on one connection`);
    }
    const releaseBytes = this.#clientBytes.take(caller.clientId, call, parsed);
    const subscription = createSubscription(subscriber);
    const { id } = subscription;
    let registration: Registration | undefined;
    let hasBegun = false;
    // There are many subscriptions: each has this one function.
    const end = (): void => {
      if (!subscriptions.delete(id)) {
        return;
      }
      registration?.end();
      releaseBytes();
      if (hasBegun) {
        this.#count(subscriber, kind, -1);
      }
    };
    subscriptions.set(id, end);
    try {
      registration = await this.#events.register(await withHash(parsed, submit), caller, needs);
    } catch (error) {
      end();
      throw error;
    }
    if (!subscriptions.has(id)) {
      registration.end();
    } else if (!subscriber.isOpen) {
      end();
    }
    inbound.afterResponse?.(() => {
      // The subscription can end before its id is sent.
      if (subscriptions.has(id)) {
        hasBegun = true;
        this.#count(subscriber, kind, 1);
        this.#options.heads.markActive();
        registration.begin({ ...subscription, since: this.#events.current });
      }
    });
    return formatLocal(id);
  }

  /** Handles eth_unsubscribe. */
  async unsubscribe(call: Call, { request }: Context): Promise<RpcResponse> {
    const { subscriptions } = subscriberOf(call, request);
    const [id] = call.params;
    if (typeof id !== "string") {
      throw invalidParams("expected a subscription's id");
    }
    const end = subscriptions.get(id);
    if (end === undefined) {
      throw new RpcError(CODES.SERVER, "subscription not found");
    }
    end();
    return formatLocal(true);
  }

  close(): void {
    this.#subscribers.close();
    this.#events.close();
  }

  #closeAll(missed: bigint): void {
    const { chain, telemetry } = this.#options;
    const { connections } = this.#subscribers;
    if (connections.length > 0) {
      telemetry.log.warn({ chain, blocks: Number(missed) }, "closing subscribers: blocks were missed");
    }
    for (const subscriber of connections) {
      subscriber.close(TRY_AGAIN_LATER, `${missed} blocks were missed`);
    }
  }

  /** Counts a subscription that begins or ends. */
  #count(subscriber: Subscriber, kind: SubscriptionRequest["kind"], change: 1 | -1): void {
    const { chain, telemetry } = this.#options;
    telemetry.metrics.subscriptions.inc({ chain, kind }, change);
    this.#subscribers.change(subscriber, change);
  }
}
