import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";

/** Results of the requests that were due in a time. */
export interface LoadCount {
  offered: number;
  /** Answered with a result within the client's patience. */
  inTime: number;
  /** Refused with 503 and Retry-After, or 429. */
  refused: number;
  /** Answered later, or not at all. */
  late: number;
  /** Any other answer. */
  other: number;
  longestRefusalMs: number;
  readonly errors: Record<string, number>;
}

export interface OpenLoad {
  readonly total: LoadCount;
  readonly windows: readonly LoadCount[];
}

export interface OpenLoadOptions {
  readonly url: string;
  /** Requests a second, whatever was answered. */
  readonly rate: number;
  readonly durationMs: number;
  readonly windowMs: number;
}

const PATIENCE_MS = 2_000;
/** More than requests that wait at once: a waiting request must not delay the others. */
const CONNECTIONS = 4_096;
const TICK_MS = 5;

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

const newCount = (): LoadCount => ({
  ...{ offered: 0, inTime: 0, refused: 0, late: 0, other: 0, longestRefusalMs: 0 },
  errors: {},
});

interface Outcome {
  readonly kind: "inTime" | "refused" | "late" | "other";
  readonly text?: string;
}

const send = async (url: string, dispatcher: Agent, dueMs: number): Promise<Outcome> => {
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
      return { kind: "late" };
    }
    if (statusCode === 200 && text.includes('"result"')) {
      return { kind: "inTime" };
    }
    const isRefusal = statusCode === 429 || (statusCode === 503 && headers["retry-after"] !== undefined);
    return { kind: isRefusal ? "refused" : "other", text: `${statusCode} ${text.replace(/\d{2,}/g, "N")}` };
  } catch {
    return { kind: "late" };
  }
};

/** Sends requests at a fixed rate. A request counts from the time at which it was due. */
export const startOpenLoad = (options: OpenLoadOptions): { readonly ended: Promise<OpenLoad> } => {
  const { url, rate, durationMs, windowMs } = options;
  const dispatcher = new Agent({ connections: CONNECTIONS });
  const total = newCount();
  const windows = Array.from({ length: Math.ceil(durationMs / windowMs) }, newCount);
  const startMs = performance.now();

  const run = async (dueMs: number): Promise<void> => {
    const counts = [total, windows[Math.floor((dueMs - startMs) / windowMs)] ?? total];
    const { kind, text } = await send(url, dispatcher, dueMs);
    const tookMs = performance.now() - dueMs;
    for (const count of new Set(counts)) {
      count[kind]++;
      if (kind === "refused") {
        count.longestRefusalMs = Math.max(count.longestRefusalMs, Math.round(tookMs));
      }
    }
    if (text !== undefined) {
      total.errors[text] = (total.errors[text] ?? 0) + 1;
    }
  };

  const offer = async (): Promise<OpenLoad> => {
    const running = new Set<Promise<void>>();
    for (let sent = 0; ; ) {
      const elapsedMs = Math.min(performance.now() - startMs, durationMs);
      for (; sent < (elapsedMs * rate) / 1_000; sent++) {
        const dueMs = startMs + (sent * 1_000) / rate;
        for (const count of new Set([total, windows[Math.floor((dueMs - startMs) / windowMs)] ?? total])) {
          count.offered++;
        }
        const one = run(dueMs).finally(() => running.delete(one));
        running.add(one);
      }
      if (elapsedMs >= durationMs) {
        break;
      }
      await sleep(TICK_MS);
    }
    await Promise.all(running);
    await dispatcher.destroy();
    return { total, windows };
  };
  return { ended: offer() };
};
