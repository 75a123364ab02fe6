import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";

const TICK_MS = 5;

/**
 * Sends at a fixed rate a second, whatever the answers take, until it is over. Resolves when all have ended. What is due after a tick is
 * sent at once.
 */
export const sendAtRate = async (
  rate: number,
  isOver: () => boolean,
  send: (at: number, dueMs: number) => Promise<void>,
  tickMs = TICK_MS,
): Promise<void> => {
  const running = new Set<Promise<void>>();
  const startMs = performance.now();
  for (let sent = 0; !isOver(); await sleep(tickMs)) {
    for (; sent < ((performance.now() - startMs) * rate) / 1_000; sent++) {
      const one = send(sent, startMs + (sent * 1_000) / rate).finally(() => running.delete(one));
      running.add(one);
    }
  }
  await Promise.all(running);
};

/** `refused`: 503 with Retry-After, or 429. `late`: after the client's patience, or not at all. */
type Kind = "inTime" | "refused" | "late" | "other";

export interface Offered {
  readonly kind: Kind;
  /** When it was due, from the begin of the load. */
  readonly atMs: number;
  /** What was answered instead of a result. */
  readonly text: string | undefined;
}

const PATIENCE_MS = 2_000;
/** More than requests that wait at once: a waiting request must not delay the others. */
const CONNECTIONS = 4_096;

const addressOf = (at: number): string => `0x${at.toString(16).padStart(40, "0")}`;

let counter = 0;

/** One request of the mix: 5 of 10 are hits, 4 are reads that only the node answers, 1 is a simulation. */
const nextCall = (): { readonly method: string; readonly params: readonly unknown[] } => {
  const at = counter++;
  const kind = at % 10;
  if (kind < 5) {
    return { method: "eth_getBlockByNumber", params: [`0x${(1 + (at % 50)).toString(16)}`, false] };
  }
  if (kind < 9) {
    return { method: "eth_getBalance", params: [addressOf(at), "0x10"] };
  }
  const calls = [{ to: addressOf(at % 8), input: "0x" }];
  return { method: "eth_simulateV1", params: [{ blockStateCalls: [{ calls }] }, "0x10"] };
};

const send = async (url: string, dispatcher: Agent, dueMs: number): Promise<Pick<Offered, "kind" | "text">> => {
  try {
    const { statusCode, headers, body } = await request(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...nextCall() }),
      dispatcher,
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    const text = await body.text();
    if (performance.now() > dueMs + PATIENCE_MS) {
      return { kind: "late", text: undefined };
    }
    if (statusCode === 200 && text.includes('"result"')) {
      return { kind: "inTime", text: undefined };
    }
    const isRefusal = statusCode === 429 || (statusCode === 503 && headers["retry-after"] !== undefined);
    return { kind: isRefusal ? "refused" : "other", text: `${statusCode} ${text.replace(/\d{2,}/g, "N")}` };
  } catch {
    return { kind: "late", text: undefined };
  }
};

/** Offers requests at a fixed rate for a time. A request counts from the time at which it was due. */
export const offerLoad = async (url: string, rate: number, durationMs: number): Promise<readonly Offered[]> => {
  const dispatcher = new Agent({ connections: CONNECTIONS });
  const offered: Offered[] = [];
  const startMs = performance.now();
  await sendAtRate(
    rate,
    () => performance.now() - startMs >= durationMs,
    async (_, dueMs) => {
      offered.push({ ...(await send(url, dispatcher, dueMs)), atMs: dueMs - startMs });
    },
  );
  await dispatcher.destroy();
  return offered;
};

export const countOf = (load: readonly Offered[], kind: Kind): number =>
  load.filter((each) => each.kind === kind).length;
