import { setTimeout as sleep } from "node:timers/promises";
import { connectSocket, type SocketClient } from "../../support/clients/socketClient.ts";
import { EMITTER } from "../chain/emitter.ts";
import { EventBook, type EventKind } from "../judge/eventBook.ts";
import { ClientSight } from "../judge/recorder.ts";
import { type ClientOptions, drawLife, type Target } from "./clientOptions.ts";
import { nextQuestion } from "./questions.ts";

const MAX_PAUSE_MS = 40;
const RECONNECT_MS = 200;

const SUBSCRIPTIONS: readonly (readonly [EventKind, ...unknown[]])[] = [
  ["newHeads"],
  ["logs", { address: EMITTER }],
  ["pendingLogs", { address: EMITTER }],
];

/** Subscribes on a connection, sends calls on it, and connects again, to each instance in turn. */
export const runSocketClient = async (options: ClientOptions): Promise<void> => {
  const { recorder, random, load, signal } = options;
  const [target] = options.targets;
  for (let count = random(MAX_PAUSE_MS); !signal.aborted; count++) {
    const all = target.instances();
    const client = await connectSocket(all[count % all.length]?.url ?? "").catch(() => undefined);
    if (client === undefined) {
      await sleep(RECONNECT_MS);
      continue;
    }
    const ending = new AbortController();
    const closed = client.closed().then(() => {
      ending.abort();
      return [] as const;
    });
    const lifeMs = drawLife(load, random);
    const books = await Promise.race([openBooks(target, client), closed]);
    const endMs = performance.now() + lifeMs;
    const isOver = () => signal.aborted || ending.signal.aborted || performance.now() >= endMs;
    await sendCalls(options, client, isOver);
    const overMs = performance.now();
    for (const book of books) {
      recorder.end(book, overMs, "WebSocket");
    }
    client.socket.terminate();
    await closed;
  }
};

/** A connection is to one process: it stands for its replica. */
let connections = 0;

const openBooks = async (target: Target, client: SocketClient): Promise<readonly EventBook[]> => {
  const books = new Map<string, EventBook>();
  const early: { id: string; event: unknown; atMs: number }[] = [];
  client.events.on("raw", (text: string) => {
    const { params } = JSON.parse(text);
    if (params === undefined) {
      return;
    }
    const atMs = performance.now();
    const book = books.get(params.subscription);
    if (book === undefined) {
      early.push({ id: params.subscription, event: params.result, atMs });
    } else {
      book.add(params.result, atMs);
    }
  });
  for (const [kind, ...params] of SUBSCRIPTIONS) {
    const startMs = performance.now();
    const { result, error } = await client.call("eth_subscribe", kind, ...params);
    if (error !== undefined) {
      continue;
    }
    const book = new EventBook(kind, target.chain, startMs, performance.now());
    books.set(String(result), book);
    for (const { event, atMs } of early.filter(({ id }) => id === result)) {
      book.add(event, atMs);
    }
  }
  return [...books.values()];
};

const sendCalls = async (
  { targets, recorder, random }: ClientOptions,
  client: SocketClient,
  isOver: () => boolean,
): Promise<void> => {
  const [{ chain }] = targets;
  const source = { replica: `connection ${++connections}`, text: "WebSocket" };
  const sight = new ClientSight(chain);
  while (!isOver()) {
    const call = nextQuestion(chain, random);
    const startMs = performance.now();
    const response = await Promise.race([client.call(call.method, ...call.params), client.closed()]);
    if ("code" in response) {
      return;
    }
    const { result, error } = response;
    recorder.answer(chain, { call, result, error, startMs, endMs: performance.now() }, sight, source);
    await sleep(random(MAX_PAUSE_MS));
  }
};
