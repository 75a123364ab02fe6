import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { brotliCompressSync } from "node:zlib";
import { RedisStore } from "../../src/cache/redisStore.ts";
import { decodeValue, encodeValue } from "../../src/cache/redisValue.ts";
import type { BlockId } from "../../src/core/heads.ts";
import { decodeFrame } from "../../src/feed/feedConnection.ts";
import { addMessage } from "../../src/feed/sequence.ts";
import { emptySequence, type SequenceState } from "../../src/feed/sequenceState.ts";
import { parseEnvelope } from "../../src/jsonrpc/envelope.ts";
import { RpcError } from "../../src/jsonrpc/rpcError.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { flashblock, hashOf } from "../support/builders/flashblocks.ts";
import { until } from "../support/clients/until.ts";
import { startRedis } from "../support/servers/redis.ts";

const MAX_STALL_MS = 50;
const BODY_BYTES = 5 * 1024 * 1024;
const FRAME_BYTES = 16 * 1024 * 1024;

/** Returns the CPU time of this thread. Other programs on the machine do not change it. */
const cpuMs = (run: () => unknown): number => {
  const before = process.threadCpuUsage();
  run();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
};

const assertShort = (t: TestContext, milliseconds: number): void => {
  t.diagnostic(`longest stall ${milliseconds.toFixed(1)} ms`);
  assert.ok(milliseconds < MAX_STALL_MS, `${milliseconds} ms`);
};

const READ_VALUE = "return redis.call('GET', KEYS[1])";

const ROUNDS = 3;

/** Returns the least of some rounds: compilation and the neighbours of a core only add to the CPU time of one. */
const leastOf = (round: () => number): number => Math.min(...Array.from({ length: ROUNDS }, round));

const ACCEPTED = "";

const messageOf = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof RpcError);
    return error.message;
  }
  return ACCEPTED;
};

/** Reads the params of each call as a handler does. */
const readAll = (body: Buffer): void => {
  for (const item of parseEnvelope(body, 1_000).items) {
    if ("call" in item) {
      assert.ok(item.call.params);
    }
  }
};

const bodyOf = (method: string, ...params: readonly unknown[]): Buffer =>
  Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));

const membersOf = (count: number, name: (index: number) => string): object =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [name(index), {}]));

const address = (index: number): string => `0x${index.toString(16).padStart(40, "0")}`;

const NAMES = "the parameters of one request have more than 5000 different member names";
const MANY_VALUES = "Invalid request: more than 100000 values";

const BODIES: readonly (readonly [name: string, body: Buffer, error: string])[] = [
  [
    "430,000 member names",
    bodyOf(
      "debug_traceCall",
      membersOf(430_000, (index) => index.toString(36)),
      "latest",
    ),
    MANY_VALUES,
  ],
  ["80,000 overridden accounts", bodyOf("eth_call", {}, "latest", membersOf(80_000, address)), NAMES],
  ["1.7 million lists", bodyOf("eth_getLogs", Array(1_700_000).fill([])), MANY_VALUES],
  ["99,000 lists, each of which has a list", bodyOf("eth_getLogs", Array(99_000).fill([[]])), ACCEPTED],
  ["1.7 million empty requests", Buffer.from(`[${Array(1_700_000).fill("{}").join(",")}]`), MANY_VALUES],
  [
    "two hundred calls of 400 member names each",
    Buffer.from(
      `[${Array.from({ length: 200 }, (_, call) =>
        bodyOf(
          "eth_call",
          membersOf(400, (index) => (400 * call + index).toString(36)),
        ),
      ).join(",")}]`,
    ),
    NAMES,
  ],
];

for (const [name, body, error] of BODIES) {
  test(`a body of ${name} is read or refused without a stall`, (t) => {
    assert.equal(
      messageOf(() => readAll(body)),
      error,
    );
    assertShort(
      t,
      cpuMs(() => messageOf(() => readAll(body))),
    );
  });
}

test("large bodies of the usual form are read", () => {
  const call = (index: number) => ({ from: address(index), to: address(1), data: "0x", value: "0x1", gas: "0x5208" });
  const calls = Array.from({ length: 5_000 }, (_, index) => call(index));
  readAll(bodyOf("eth_simulateV1", { blockStateCalls: [{ calls }] }, "latest"));
  readAll(bodyOf("eth_call", {}, "latest", membersOf(4_000, address)));
  readAll(
    Buffer.from(
      `[${calls
        .slice(0, 1_000)
        .map((each) => bodyOf("eth_call", each, "latest"))
        .join(",")}]`,
    ),
  );
  readAll(bodyOf("eth_sendRawTransaction", `0x${"00".repeat(BODY_BYTES / 4)}`));
  readAll(bodyOf("eth_test", ",".repeat(BODY_BYTES / 4)));
  readAll(bodyOf("eth_test", { '"quoted\\': ['a","b":', "\\"] }, "x".repeat(100_000)));
});

test("a short brotli frame that grows is refused without a stall", (t) => {
  const frame = brotliCompressSync(Buffer.alloc(FRAME_BYTES - 1, " "));
  assert.ok(frame.length < 100);
  assert.deepEqual(decodeFrame(frame, FRAME_BYTES), { refused: "tooLarge" });
  assertShort(
    t,
    cpuMs(() => decodeFrame(frame, FRAME_BYTES)),
  );
});

test("a thousand feed messages in reverse order are applied without a stall", (t) => {
  const head: BlockId = { number: 100n, hash: hashOf(100n) };
  const messages = Array.from({ length: 1_000 }, (_, index) => flashblock(index, { number: 101n }));
  messages.reverse();
  const longest = leastOf(() => {
    let state: SequenceState = emptySequence;
    const times = messages.map((message) =>
      cpuMs(() => {
        ({ state } = addMessage(state, message, head, { maxDepth: 5 }));
      }),
    );
    assert.equal(state.blocks[0]?.messages.length, 1_000);
    assert.deepEqual(state.buffered, []);
    return Math.max(...times);
  });
  assertShort(t, longest);
});

test("a Redis value that claims and holds more than its limit is rejected before it is decompressed", async (t) => {
  const bytes = 128 * 1024 * 1024;
  const value = await encodeValue("key", { body: Buffer.alloc(bytes), isFinal: true, storedAtMs: 0 });
  assert.ok(value.length < bytes / 100);
  const before = process.threadCpuUsage();
  assert.equal(await decodeValue("key", value), undefined);
  const { user, system } = process.threadCpuUsage(before);
  assertShort(t, (user + system) / 1_000);
});

test("1,000 lookups of unknown filters in Redis", async (t) => {
  const redis = await startRedis(t);
  const url = `redis://127.0.0.1:${redis.port}`;
  const store = new RedisStore({ url, timeoutMs: 1_000, telemetry: createTelemetry({ level: "silent" }) });
  t.after(() => store.close());
  await until(
    () =>
      store.run(READ_VALUE, "filter", []).then(
        () => true,
        () => false,
      ),
    "a script runs",
  );
  const lookups: Promise<unknown>[] = [];
  const sendMs = leastOf(() =>
    cpuMs(() => {
      for (let id = 0; id < 1_000; id++) {
        lookups.push(store.run(READ_VALUE, `filter${id}`, []));
      }
    }),
  );
  assertShort(t, sendMs);
  assert.deepEqual(new Set(await Promise.all(lookups)), new Set([null]));
});
