import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { ZERO_HASH } from "../../src/ethereum/hex.ts";
import { type Anvil, startAnvil } from "../devnet/anvil.ts";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { type Lie, type LyingNode, startLyingNode } from "../support/fakes/lyingNode.ts";
import { createService, type Service, type ServiceChain } from "../support/servers/service.ts";

/** A field of a later fork, which the hash covers, so that forebay cannot compute it. Heads are as they were. */
const UNKNOWN_FIELD: Lie = {
  name: "a field of a later fork",
  methods: ["eth_getBlockByNumber", "eth_getBlockByHash"],
  result: (block, { params }) =>
    block === null || params[1] === false ? block : { ...Object(block), laterForkRoot: ZERO_HASH, gasLimit: "0x1" },
};

let anvil: Anvil;
before(async () => {
  anvil = await startAnvil(["--no-mining", "--chain-id", "31337"]);
  const [sender] = Object(await anvil.call("eth_accounts"));
  // Blocks without transactions are answered from their headers.
  await anvil.call("eth_sendTransaction", { from: sender, to: sender });
  await anvil.call("anvil_mine", "0x8");
});
after(() => anvil.close());

interface Stage {
  readonly service: Service;
  readonly nodes: readonly LyingNode[];
  /** Reads a block by number. Returns its number, or the text of the error. */
  readBlock(number: number): Promise<unknown>;
}

/** The second node is of the same chain. */
const start = async (
  t: TestContext,
  options: Pick<ServiceChain["nodes"][number], "methods"> = {},
  isDead = false,
): Promise<Stage> => {
  const nodes = await Promise.all([1, 2].map(() => startLyingNode(t, anvil.url, [UNKNOWN_FIELD])));
  const [first, second] = nodes;
  assert.ok(first && second);
  if (isDead) {
    await second.stop();
  }
  const service = await createService({
    nodes: [
      { name: "first", url: first.url },
      { name: "second", url: second.url, ...options },
    ],
    ...{ pending: { mode: "node" }, state: { follow: false }, upstream: { hedge: { maxShare: 0 } } },
  });
  t.after(() => service.close());
  if (!isDead) {
    await until(
      () => service.chains[0]?.upstreams.nodes.every(({ available }) => available) === true,
      "both nodes are used",
    );
  }
  const readBlock = async (number: number): Promise<unknown> => {
    const { body } = await rpc(service.url, "eth_getBlockByNumber", [`0x${number.toString(16)}`, true]);
    return body.error?.message ?? Object(body.result).number;
  };
  return { service, nodes, readBlock };
};

test("what cannot be computed is served although another node is dead", async (t) => {
  const { readBlock } = await start(t, {}, true);
  assert.equal(await readBlock(1), "0x1");
});

test("what cannot be computed is served although another node is cordoned", async (t) => {
  const { service, readBlock } = await start(t);
  service.chains[0]?.upstreams.nodes[1]?.state.cordon(true);
  assert.equal(await readBlock(1), "0x1");
});

test("what cannot be computed is served although another node gets writes alone", async (t) => {
  const { readBlock } = await start(t, { methods: { only: ["eth_sendRawTransaction"] } });
  assert.equal(await readBlock(1), "0x1");
});

test("what cannot be computed is asked of each node that can be used", async (t) => {
  const { nodes, readBlock } = await start(t);
  assert.equal(await readBlock(1), "0x1");
  assert.ok(nodes.every(({ lied }) => lied.has(UNKNOWN_FIELD.name)));
});
