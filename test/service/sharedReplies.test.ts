import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { encodeDeployData, encodeFunctionData } from "viem";
import { type Anvil, startAnvil } from "../devnet/anvil.ts";
import { compile } from "../support/builders/compile.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { settled } from "../support/clients/settled.ts";
import { flip } from "../support/fakes/answerLie.ts";
import { callsOf, forwardTo, startFront } from "../support/fakes/front.ts";
import { startLyingNode } from "../support/fakes/lyingNode.ts";
import type { ChainCall } from "../support/servers/sealedChain.ts";
import { createService, type Service } from "../support/servers/service.ts";

/** A thread verifies larger results, and scans those that are only scanned from here on. */
const THREAD_BYTES = 24 * 1024;
const SCANNED_BYTES = 128 * 1024;
const MAX_SMALL = 12;
const GAS = "0x1c9c380";
const BYPASS = "x-no-cache";

let anvil: Anvil;
let sender: string;
let smallHash: string;
let small: readonly ChainCall[] = [];
/** Calls with results that are smaller than a limit, as large, and larger. */
const large: ChainCall[] = [];

const send = async (transaction: object): Promise<string> => {
  const hash = String(await anvil.call("eth_sendTransaction", { from: sender, gas: GAS, ...transaction }));
  await anvil.call("anvil_mine", "0x1");
  return hash;
};

const bytesOf = async ({ method, params }: ChainCall): Promise<number> =>
  JSON.stringify(await anvil.call(method, ...params)).length;

/** Sends a transaction with so much data that the result of the method about it has this size. */
const sendOfSize = async (method: string, bytes: number, emptyBytes: number): Promise<ChainCall> => {
  const hash = await send({ to: sender, data: `0x${"11".repeat((bytes - emptyBytes) / 2)}` });
  return { method, params: [hash] };
};

before(async () => {
  anvil = await startAnvil(["--no-mining", "--chain-id", "31337", "--gas-limit", "300000000"]);
  sender = String(Object(await anvil.call("eth_accounts"))[0]);
  smallHash = await send({ to: sender });
  const contract = compile(join(import.meta.dirname, "Emitter.sol"), "cancun").get("Emitter");
  assert.ok(contract);
  const { abi, bytecode } = contract;
  const created = await send({ data: encodeDeployData({ abi, bytecode }) });
  const { contractAddress } = Object(await anvil.call("eth_getTransactionReceipt", created));
  for (const method of ["eth_getTransactionByHash", "eth_getRawTransactionByHash"]) {
    const some = { method, params: [await send({ to: sender, data: `0x${"11".repeat(THREAD_BYTES / 2)}` })] };
    const emptyBytes = (await bytesOf(some)) - THREAD_BYTES;
    for (const bytes of [THREAD_BYTES - 2, THREAD_BYTES, THREAD_BYTES + 2, 2 * 30_000, SCANNED_BYTES + 2]) {
      large.push(await sendOfSize(method, bytes + (emptyBytes % 2), emptyBytes));
    }
  }
  for (const logs of [30n, 38n, 39n, 40n, 60n]) {
    const data = encodeFunctionData({ abi, functionName: "emitMany", args: [logs, 1n] });
    large.push({ method: "eth_getTransactionReceipt", params: [await send({ to: contractAddress, data })] });
  }
  await anvil.call("anvil_mine", "0x28");
  small = Array.from({ length: MAX_SMALL }, (_, index) => createSmallCall(index));
});
after(() => anvil.close());

interface Stage {
  readonly service: Service;
  /** The methods of each batch that the nodes got. */
  readonly batches: readonly (readonly string[])[];
}

const start = async (t: TestContext, origins: number): Promise<Stage> => {
  const batches: string[][] = [];
  const nodes = await Promise.all(
    Array.from({ length: origins }, () =>
      startFront((body) => {
        batches.push(callsOf(body).map(({ method }) => method));
        return forwardTo(anvil.url, body);
      }),
    ),
  );
  t.after(() => Promise.all(nodes.map((node) => node.close())));
  const service = await createService(
    {
      nodes: nodes.map(({ url }) => ({ url })),
      ...{
        pending: { mode: "node" },
        finality: { depth: 20 },
        upstream: { hedge: { maxShare: 0 } },
        state: { follow: false },
      },
    },
    { cache: { bypassHeader: BYPASS } },
  );
  t.after(() => service.close());
  await settled(service);
  return { service, batches };
};

/** Sends the calls in one batch, past the cache. Returns the results in order. */
const sendBatch = async ({ url }: Service, calls: readonly ChainCall[]): Promise<readonly unknown[]> => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", [BYPASS]: "1" },
    body: JSON.stringify(calls.map((call, id) => ({ jsonrpc: "2.0", id, ...call }))),
  });
  const items = (await response.json()) as { readonly result?: unknown; readonly error?: unknown }[];
  return items.map(({ result, error }) => result ?? { error });
};

const createSmallCall = (index: number): ChainCall =>
  [
    { method: "eth_getBalance", params: [`0x${(index + 1).toString(16).padStart(40, "0")}`, "latest"] },
    { method: "eth_getTransactionByHash", params: [smallHash] },
    { method: "eth_getStorageAt", params: [sender, `0x${index.toString(16)}`, "latest"] },
  ][index % 3] ?? { method: "eth_blockNumber", params: [] };

/** Small calls, and the place of a large call among them. */
const ORDERS: readonly (readonly [smalls: number, at: number])[] = [
  [1, 0],
  [1, 1],
  [MAX_SMALL, 0],
  [MAX_SMALL, MAX_SMALL / 2],
  [MAX_SMALL, MAX_SMALL],
];

const truths = new Map<ChainCall, Promise<unknown>>();
const truthOf = (calls: readonly ChainCall[]): Promise<readonly unknown[]> =>
  Promise.all(
    calls.map((call) => {
      const known = truths.get(call) ?? anvil.call(call.method, ...call.params);
      truths.set(call, known);
      return known;
    }),
  );

const assertNobodyBlamed = async ({ opsUrl }: Service): Promise<void> => {
  assert.equal(await metric(opsUrl, "forebay_upstream_suspended"), 0, "no node is suspended");
  assert.equal(await metric(opsUrl, "forebay_verify_failures_total"), 0, "nothing failed verification");
};

for (const origins of [1, 2]) {
  test(`a large result and small ones of one reply are right from one connection, with ${origins} origins`, async (t) => {
    const { service, batches } = await start(t, origins);
    for (const call of large) {
      for (const [smalls, at] of ORDERS) {
        const calls = small.slice(0, smalls).toSpliced(at, 0, call);
        assert.deepEqual(await sendBatch(service, calls), await truthOf(calls), JSON.stringify(calls));
      }
    }
    // With two, the selection of a node may separate them.
    for (const { method } of origins === 1 ? large : []) {
      assert.ok(
        batches.some((methods) => methods.length > 1 && methods.includes(method)),
        `${method} shared a request`,
      );
    }
    await assertNobodyBlamed(service);
  });

  test(`a large result and small ones of one reply are right from two connections, with ${origins} origins`, async (t) => {
    const { service } = await start(t, origins);
    for (const call of large) {
      for (const smalls of [1, MAX_SMALL]) {
        const others = small.slice(0, smalls);
        const [[alone], rest] = await Promise.all([sendBatch(service, [call]), sendBatch(service, others)]);
        assert.deepEqual([alone, ...rest], await truthOf([call, ...others]), JSON.stringify(call));
      }
    }
    await assertNobodyBlamed(service);
  });
}

test("a node whose large proof is wrong is suspended", async (t) => {
  const node = await startLyingNode(t, anvil.url);
  const service = await createService({
    nodes: [{ url: node.url }],
    pending: { mode: "node" },
    state: { follow: false },
  });
  t.after(() => service.close());
  await settled(service);
  const keys = Array.from({ length: 400 }, (_, index) => `0x${index.toString(16).padStart(64, "0")}`);
  const call = { method: "eth_getProof", params: [sender, keys, "latest"] };
  const right = await rpc(service.url, call.method, call.params);
  assert.ok(right.text.length > THREAD_BYTES);
  assert.deepEqual([right.body.result], await truthOf([call]));
  node.lies = [{ name: "another balance", methods: [call.method], result: (proof) => flip("balance")(Object(proof)) }];
  const { body } = await rpc(service.url, call.method, [sender, keys.toReversed(), "latest"]);
  assert.equal(body.error?.message, "the upstream response failed verification (proof)");
  assert.equal(await metric(service.opsUrl, "forebay_upstream_suspended"), 1);
});
