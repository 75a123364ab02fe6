import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { WebSocket } from "ws";
import { z } from "zod";
import { metric } from "../support/clients/rpc.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { FakeError } from "../support/fakes/front.ts";
import { createService, type Service } from "../support/servers/service.ts";

const KEYS = ["wallet", "indexer", "bot"];
const CALLS = 3_000;
const AT_ONCE = 16;
const LARGEST_BATCH = 40;
const SOCKET_CALLS = 200;

/** The published prices, as the client knows them. */
const UNITS: Readonly<Record<string, number>> = {
  eth_chainId: 0,
  eth_blockNumber: 10,
  eth_getBlockByNumber: 20,
  eth_getBalance: 20,
  eth_getCode: 7,
  eth_call: 26,
  debug_traceTransaction: 50,
};

interface Counted {
  calls: number;
  errors: number;
  units: number;
  receivedBytes: number;
  sentBytes: number;
}

const amounts = z.object({
  calls: z.number(),
  errors: z.number(),
  savedCalls: z.number(),
  units: z.number(),
  savedUnits: z.number(),
  receivedBytes: z.number(),
  sentBytes: z.number(),
  savedShare: z.number().nullable(),
});
const report = z.object({
  since: z.iso.datetime(),
  prices: z.string(),
  keys: z.array(amounts.extend({ key: z.string() })),
  others: amounts.extend({ keys: z.number() }).optional(),
  total: amounts,
});

let node: FakeNode;
let service: Service;

before(async () => {
  const chain = createFakeChain({ height: 200 });
  node = await createFakeNode({
    chain,
    handlers: {
      eth_getBalance: () => "0x1",
      eth_getCode: () => `0x${"60".repeat(2_000)}`,
      eth_call: () => {
        throw new FakeError(3, "execution reverted", "0x");
      },
      debug_traceTransaction: () => ({ gas: 21_000 }),
    },
  });
  service = await createService(
    {
      nodes: [{ url: node.url }],
      forks: "none",
      pending: { mode: "node" },
      state: { follow: false, units: { eth_getCode: 7 } },
    },
    {
      access: { keys: KEYS.map((name) => ({ name, sha256: createHash("sha256").update(name).digest("hex") })) },
      usage: { units: { "debug_*": 50 }, topKeys: 2 },
    },
  );
});
after(async () => {
  await service?.close();
  await node?.close();
});

/** Creates numbers that look random and repeat in every run. */
const createDice = () => {
  let state = 20_261_122;
  return (sides: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % sides;
  };
};

const roll = createDice();
const address = (): string => `0x${roll(50).toString(16).padStart(40, "0")}`;
const MIX: readonly (() => readonly [string, readonly unknown[]])[] = [
  () => ["eth_chainId", []],
  () => ["eth_blockNumber", []],
  () => ["eth_getBlockByNumber", [`0x${roll(100).toString(16)}`, false]],
  () => ["eth_getBalance", [address(), "0x10"]],
  () => ["eth_getCode", [address(), "0x10"]],
  () => ["eth_call", [{ to: address() }, "0x10"]],
  () => ["debug_traceTransaction", [`0x${"ab".repeat(32)}`]],
];

const nextCall = () => {
  const [method, params] = MIX[roll(MIX.length)]?.() ?? ["eth_chainId", []];
  return { jsonrpc: "2.0", id: roll(1_000), method, params };
};

const counted = new Map<string, Counted>(
  KEYS.map((key) => [key, { calls: 0, errors: 0, units: 0, receivedBytes: 0, sentBytes: 0 }]),
);

/** Counts one request and its response as its client sees them. */
const count = (key: string, calls: readonly { readonly method: string }[], body: string, text: string): void => {
  const own = counted.get(key);
  assert.ok(own);
  own.calls += calls.length;
  own.units += calls.reduce((sum, { method }) => sum + (UNITS[method] ?? 0), 0);
  own.errors += text.split('"error":').length - 1;
  own.receivedBytes += Buffer.byteLength(body);
  own.sentBytes += Buffer.byteLength(text);
};

const sendOne = async (key: string, calls: readonly { readonly method: string }[]): Promise<void> => {
  const body = JSON.stringify(calls.length === 1 ? calls[0] : calls);
  const response = await fetch(service.url, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": key },
    body,
  });
  count(key, calls, body, await response.text());
};

const sendOnSocket = async (key: string): Promise<void> => {
  const socket = new WebSocket(service.url.replace("http:", "ws:"), { headers: { authorization: `Bearer ${key}` } });
  await once(socket, "open");
  for (let sent = 0; sent < SOCKET_CALLS; sent++) {
    const call = nextCall();
    const body = JSON.stringify(call);
    const answered = once(socket, "message");
    socket.send(body);
    const [data] = await answered;
    count(key, [call], body, String(data));
  }
  socket.close();
  await once(socket, "close");
};

const readReport = async (query = "") => report.parse(await (await fetch(`${service.opsUrl}/usage${query}`)).json());

test("for 3,000 mixed calls of three keys, the report has the calls, units, errors and bytes that the clients counted", async () => {
  let left = CALLS - SOCKET_CALLS;
  const work = async (): Promise<void> => {
    while (left > 0) {
      const size = Math.min(left, roll(3) === 0 ? 1 : 1 + roll(LARGEST_BATCH));
      left -= size;
      await sendOne(KEYS[roll(KEYS.length)] ?? "bot", Array.from({ length: size }, nextCall));
    }
  };
  await Promise.all([...Array.from({ length: AT_ONCE }, work), sendOnSocket("indexer")]);

  const { keys, total, others, prices } = await readReport();
  assert.equal(prices, "alchemy");
  assert.equal(others, undefined);
  assert.equal(total.calls, CALLS);
  for (const { key, ...own } of keys) {
    const { calls, errors, units, receivedBytes, sentBytes } = own;
    assert.deepEqual({ calls, errors, units, receivedBytes, sentBytes }, counted.get(key), key);
    assert.ok(own.savedCalls > 0 && own.savedUnits > 0 && own.savedUnits < own.units);
    assert.equal(own.savedShare, own.savedCalls / own.calls);
  }
  assert.deepEqual(keys.map(({ key }) => key).toSorted(), KEYS.toSorted());
  assert.deepEqual(
    keys.map(({ units }) => units),
    keys.map(({ units }) => units).toSorted((a, b) => b - a),
  );
});

test("the report and the metrics sum the keys that are not listed", async () => {
  const { keys, others, total } = await readReport("?top=1");
  assert.deepEqual([keys.length, others?.keys], [1, 2]);
  assert.equal((keys[0]?.units ?? 0) + (others?.units ?? 0), total.units);

  const all = await readReport();
  const [first, second, third] = all.keys;
  assert.ok(first && second && third);
  const ofKey = (name: string, key: string) => metric(service.opsUrl, `forebay_key_${name}`, `key="${key}"`);
  assert.equal(await ofKey("units_total", first.key), first.units);
  assert.equal(await ofKey("calls_total", second.key), second.calls);
  assert.equal(await ofKey("saved_units_total", "other"), third.savedUnits);
  assert.equal(await ofKey("units_total", third.key), 0);
});
