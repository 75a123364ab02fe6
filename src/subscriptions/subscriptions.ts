import type { RequestContext, RpcResponse } from "../core/rpcSource.ts";
import type { LogFilterLimits } from "../ethereum/logFilter.ts";
import type { Handler } from "../jsonrpc/dispatch.ts";
import { CODES, invalidParams, RpcError } from "../jsonrpc/rpcError.ts";
import { createEventHub, type EventHubOptions } from "./eventHub.ts";
import { createSubscription, type Subscriber } from "./subscriber.ts";
import { parseWanted } from "./subscriptionKinds.ts";

export interface SubscriptionsOptions extends Omit<EventHubOptions, "onMissed"> {
  readonly heads: EventHubOptions["heads"] & {
    /** Somebody waits for new heads. */
    markActive(): void;
  };
  readonly limits: LogFilterLimits;
  /** Of one connection. */
  readonly maxSubscriptions: number;
}

/** A call that came over a WebSocket. */
export interface SocketContext extends RequestContext {
  readonly subscriber: Subscriber;
  onAnswered(then: () => void): void;
}

/** eth_subscribe and eth_unsubscribe on one chain. */
export interface Subscriptions {
  lookup(method: string): Handler<SocketContext, RpcResponse> | undefined;
  close(): void;
}

/** Below the time after which a chain counts as idle. */
const TOUCH_MS = 10_000;
const TRY_AGAIN_LATER = 1013;

const answer = (value: unknown): RpcResponse => ({
  body: Buffer.from(JSON.stringify(value)),
  status: { hit: "local" },
});

export const createSubscriptions = (options: SubscriptionsOptions): Subscriptions => {
  const { chain, heads, limits, maxSubscriptions } = options;
  const { log, metrics } = options.telemetry;
  /** With how many subscriptions. */
  const subscribers = new Map<Subscriber, number>();

  const events = createEventHub({
    ...options,
    onMissed: (blocks) => {
      if (subscribers.size > 0)
        log.warn({ chain, blocks: Number(blocks) }, "blocks were missed; subscribers are closed");
      for (const subscriber of [...subscribers.keys()]) {
        subscriber.close(TRY_AGAIN_LATER, `${blocks} blocks were missed`);
      }
    },
  });

  const touching = setInterval(() => {
    if (subscribers.size > 0) heads.markActive();
  }, TOUCH_MS);
  touching.unref();

  const count = (subscriber: Subscriber, change: 1 | -1): void => {
    const left = (subscribers.get(subscriber) ?? 0) + change;
    if (left > 0) subscribers.set(subscriber, left);
    else subscribers.delete(subscriber);
  };

  const subscribe: Handler<SocketContext, RpcResponse> = async ({ params }, { subscriber, onAnswered }) => {
    const wanted = parseWanted(params, limits);
    const { subscriptions } = subscriber;
    const labels = { chain, kind: wanted.kind };
    const place = await events.register(wanted);
    if (subscriptions.size >= maxSubscriptions) {
      place.end();
      throw new RpcError(CODES.INVALID_REQUEST, `more than ${maxSubscriptions} subscriptions on one connection`);
    }
    const subscription = createSubscription(subscriber);
    const { id } = subscription;
    let hasBegun = false;
    const end = (): void => {
      if (!subscriptions.delete(id)) return;
      place.end();
      if (!hasBegun) return;
      metrics.subscriptions.dec(labels);
      count(subscriber, -1);
    };
    subscriptions.set(id, end);
    if (!subscriber.isOpen) end();
    onAnswered(() => {
      // It may have ended before it began.
      if (!subscriptions.has(id)) return;
      hasBegun = true;
      place.begin({ ...subscription, since: events.current });
      metrics.subscriptions.inc(labels);
      count(subscriber, 1);
      heads.markActive();
    });
    return answer(id);
  };

  const unsubscribe: Handler<SocketContext, RpcResponse> = async ({ params: [id] }, { subscriber }) => {
    if (typeof id !== "string") throw invalidParams("expected a subscription's id");
    const end = subscriber.subscriptions.get(id);
    if (end === undefined) throw new RpcError(CODES.SERVER, "subscription not found");
    end();
    return answer(true);
  };

  const handlers = new Map([
    ["eth_subscribe", subscribe],
    ["eth_unsubscribe", unsubscribe],
  ]);
  return {
    lookup: (method) => handlers.get(method),
    close: () => {
      clearInterval(touching);
      events.close();
    },
  };
};
