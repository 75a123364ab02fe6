import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { addressOf } from "../support/builders/stateModel.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { followHead } from "../support/servers/followHead.ts";
import { createService, type ServiceChain } from "../support/servers/service.ts";
import { startWorldNode, type WorldNodeOptions } from "../world/nodes/worldNode.ts";
import { RandomStateBlocks, STAND_IN_ACCOUNTS, type TracedRefunds } from "../world/state/randomStateBlocks.ts";
import { StandInChain } from "../world/state/standInChain.ts";

/** Long, so that no read is late on a busy machine. The test refreshes the heads itself. */
const LONG_MS = 20_000;
/** One answer of a hundred is compared with the node. Above that share, none is. */
const NOT_COMPARED = 0.5;
/** Longer than the test: only what is proven answers reads. */
/** Provider units that the reads of the test pay for. */
const CHEAP = { debug_executionWitness: 1, eth_getProof: 1 };
const ALICE = addressOf(0);
const WRITTEN = Array.from({ length: 12 }, (_, index) => addressOf(index));

interface RigOptions {
  readonly chain: StandInChain;
  readonly accounts: readonly `0x${string}`[];
  readonly state?: ServiceChain["state"];
  readonly node?: WorldNodeOptions;
}

/** A service in front of a node with traces, witnesses and proofs of real state roots. */
const startRig = async (t: TestContext, { chain, accounts, state, node: options }: RigOptions) => {
  t.mock.method(Math, "random", () => NOT_COMPARED);
  const node = await startWorldNode(t, chain, { traces: "geth", hasWitnesses: true, ...options });
  const service = await createService({
    nodes: [{ url: node.url }],
    blockTimeMs: LONG_MS,
    forks: "prague",
    state: { waitMs: LONG_MS, units: CHEAP, ...state },
  });
  t.after(() => service.close());
  /** Reads the balances at the newest block. Returns the number of answers from known state, and of proven ones. */
  const read = async () => {
    await followHead(service, chain);
    const counts = { hits: 0, proven: 0 };
    for (const account of accounts) {
      const { body, headers } = await rpc(service.url, "eth_getBalance", [account, "latest"]);
      const expected = chain.stateAt(chain.head.hash).balance(account);
      assert.equal(body.result, `0x${expected.toString(16)}`, `${account} at ${chain.height}`);
      counts.hits += headers.get("cache-status") === "forebay; hit; detail=state" ? 1 : 0;
      counts.proven += headers.get("x-forebay-proof") === `proven; block=${chain.height}` ? 1 : 0;
    }
    return counts;
  };
  const proofs = (result: string) =>
    metric(service.opsUrl, "forebay_state_proofs_total", `result="${result}"`, `source="trace"`);
  /** Reads at new blocks until the node is asked for a trace, because that pays. Values of one block are read in bulk before. */
  const follow = async (mine: () => unknown) => {
    while ((node.calls.get("debug_traceBlockByHash") ?? 0) === 0) {
      await mine();
      await read();
    }
  };
  return { node, service, read, follow, proofs };
};

for (const [name, refunds] of [
  ["traces", undefined],
  ["traces of blocks that give back gas, and show it,", "settled"],
  ["traces of blocks that give back gas, and do not show it,", "unsettled"],
] as const) {
  test(`${name} that a witness proves need no check, and their values are proven`, (t) => runProven(t, refunds));
}

const runProven = async (t: TestContext, refunds: TracedRefunds | undefined) => {
  const chain = new StandInChain("prague", true);
  const blocks = new RandomStateBlocks(chain, 5, refunds);
  blocks.genesis();
  const { service, read, follow, proofs } = await startRig(t, { chain, accounts: STAND_IN_ACCOUNTS });
  await follow(() => blocks.mine());
  const total = { hits: 0, proven: 0 };
  for (let turn = 0; turn < 9; turn++) {
    await blocks.mine();
    const { hits, proven } = await read();
    total.hits += hits;
    total.proven += proven;
  }
  assert.ok((await proofs("proven")) >= 6, `${await proofs("proven")} proven`);
  assert.equal(await proofs("refused"), 0);
  assert.ok(total.hits > 3 * STAND_IN_ACCOUNTS.length, `${total.hits} hits`);
  assert.ok(total.proven > STAND_IN_ACCOUNTS.length, `${total.proven} proven`);
  assert.equal(await metric(service.opsUrl, "forebay_state_unchecked"), 0);
};

test("a trace that misses a write is refused by the state root, and its node's traces are suspended", async (t) => {
  const chain = new StandInChain("prague", true);
  chain.mine([[ALICE, 1n]]);
  const { node, read, follow, proofs } = await startRig(t, { chain, accounts: WRITTEN });
  await follow(() => chain.mine([[ALICE, BigInt(chain.height)]]));
  let hits = 0;
  for (let turn = 0; turn < 5; turn++) {
    // No trace has this write.
    chain.mine([[ALICE, BigInt(chain.height)]]);
    const counts = await read();
    hits += counts.hits;
    assert.equal(counts.proven, 0);
  }
  assert.equal(hits, 0);
  assert.equal(await proofs("proven"), 0);
  assert.ok((await proofs("refused")) >= 1);
  assert.equal(node.calls.get("debug_executionWitness"), await proofs("refused"));
});

for (const lie of [
  {
    ...{ name: "a node of the witness is left out", methods: ["debug_executionWitness"] },
    result: (witness: unknown) => ({ state: (witness as { state: unknown[] }).state.slice(1) }),
  },
  {
    ...{ name: "a proof has another balance", methods: ["eth_getProof"] },
    result: (proof: unknown) => ({ ...(proof as object), accountProof: ["0xc0"] }),
  },
]) {
  test(`nothing is proven if ${lie.name}`, async (t) => {
    const chain = new StandInChain("prague", true);
    const blocks = new RandomStateBlocks(chain, 6);
    blocks.genesis();
    const accounts = STAND_IN_ACCOUNTS.slice(0, 16);
    const { node, read, follow, proofs } = await startRig(t, { chain, accounts, node: { lies: [lie] } });
    await follow(() => blocks.mine());
    for (let turn = 0; turn < 6; turn++) {
      await blocks.mine();
      assert.equal((await read()).proven, 0);
    }
    assert.equal(await proofs("proven"), 0);
    assert.equal((await proofs("missing")) + (await proofs("malformed")), 3);
    assert.equal(node.calls.get("debug_executionWitness"), 3, "then none is asked for a time");
  });
}

for (const [name, options] of Object.entries({
  "the node has none": { node: { hasWitnesses: false }, asked: 1 },
  "the reads of clients do not pay for them": { state: { units: {} }, asked: 0 },
  "state.prove is false": { state: { prove: false }, asked: 0 },
} as const)) {
  test(`no value is proven without witnesses: ${name}`, async (t) => {
    const { asked, ...rest } = options;
    const chain = new StandInChain("prague", true);
    chain.mine(WRITTEN.map((account) => [account, 1n]));
    const { node, read, follow } = await startRig(t, { chain, accounts: WRITTEN, ...rest });
    await follow(() => chain.mine());
    while ((node.calls.get("debug_traceBlockByHash") ?? 0) < 3) {
      chain.mine();
      assert.equal((await read()).proven, 0);
    }
    assert.equal(node.calls.get("debug_executionWitness") ?? 0, asked);
  });
}
