import { once } from "node:events";
import { WebSocket } from "ws";
import {
  CONNECTIONS,
  personOf,
  personTopic,
  readTimeMs,
  SLOW_EVERY,
  SUBSCRIPTIONS_EACH,
  TOKEN,
  TRANSFER,
} from "./subscribersShape.ts";

/**
 * The `fast` or the `slow` clients of the long run `subscribers`. Each kind has a process, so that one does not delay the other.
 * Each subscription must receive the logs of its person, in order.
 */
const [, , port, speed] = process.argv;

const PAUSE_MS = 4_000;
const IN_PARALLEL = 50;
/** Time limit for notifications in flight at the end. */
const MAX_LAST_MS = 10_000;

interface Seen {
  readonly person: number;
  last: number;
}

const sockets: WebSocket[] = [];
const seen: Seen[] = [];
let delays: number[] = [];
let outOfOrder = 0;
let closed = 0;
let onNotification: ((entry: Seen) => void) | undefined;

const open = async (connection: number): Promise<void> => {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false });
  const byId = new Map<string, Seen>();
  const answered = Promise.withResolvers<void>();
  socket.on("close", () => closed++);
  socket.on("message", (data) => {
    const message = JSON.parse(String(data));
    if (message.id !== undefined) {
      const entry = { person: personOf(connection, message.id), last: 0 };
      byId.set(message.result, entry);
      seen.push(entry);
      if (byId.size === SUBSCRIPTIONS_EACH) {
        answered.resolve();
      }
      return;
    }
    const { subscription, result } = message.params;
    const entry = byId.get(subscription);
    const count = Number(result.topics[3]);
    if (entry === undefined || result.topics[2] !== personTopic(entry.person) || count !== entry.last + 1) {
      outOfOrder++;
    }
    if (entry) {
      entry.last = count;
      onNotification?.(entry);
    }
    delays.push(performance.timeOrigin + performance.now() - readTimeMs(result.topics[1]));
  });
  await once(socket, "open");
  for (let at = 0; at < SUBSCRIPTIONS_EACH; at++) {
    const filter = { address: TOKEN, topics: [TRANSFER, null, personTopic(personOf(connection, at))] };
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: at, method: "eth_subscribe", params: ["pendingLogs", filter] }));
  }
  await answered.promise;
  sockets.push(socket);
};

const openAll = async (): Promise<void> => {
  const isOurs = (connection: number) => (connection % SLOW_EVERY === 0) === (speed === "slow");
  const left = Array.from({ length: CONNECTIONS }, (_, connection) => connection).filter(isOurs);
  const worker = async () => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      await open(next);
    }
  };
  await Promise.all(Array.from({ length: IN_PARALLEL }, worker));
};

let pausing: NodeJS.Timeout | undefined;
const breathe = (): void => {
  for (const socket of sockets) {
    if (socket.isPaused) {
      socket.resume();
    } else {
      socket.pause();
    }
  }
};

const takeDelays = () => {
  const sorted = Float64Array.from(delays).sort();
  delays = [];
  const at = (share: number) => Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 10) / 10;
  return { deliveries: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(0.9999999) };
};

/** Waits for the last notification of each subscription. Returns the number of subscriptions that did not get theirs in time. */
const awaitLast = async (counts: readonly number[]): Promise<number> => {
  const incomplete = new Set(seen.filter(({ person, last }) => last !== counts[person]));
  const completed = Promise.withResolvers<void>();
  onNotification = (entry) => {
    if (entry.last === counts[entry.person]) {
      incomplete.delete(entry);
    }
    if (incomplete.size === 0) {
      completed.resolve();
    }
  };
  const timer = setTimeout(() => completed.resolve(), MAX_LAST_MS);
  if (incomplete.size > 0) {
    await completed.promise;
  }
  clearTimeout(timer);
  return incomplete.size;
};

process.on("message", async (message: { ask: "slow" | "delays" | "end"; counts?: readonly number[] }) => {
  if (message.ask === "delays") {
    process.send?.(takeDelays());
  }
  if (message.ask === "slow") {
    breathe();
    pausing = setInterval(breathe, PAUSE_MS);
  }
  if (message.ask === "end") {
    clearInterval(pausing);
    for (const socket of sockets) {
      socket.resume();
    }
    process.send?.({ incomplete: await awaitLast(message.counts ?? []), outOfOrder, closed });
  }
});
process.on("disconnect", () => process.exit());
await openAll();
process.send?.({ subscriptions: seen.length });
