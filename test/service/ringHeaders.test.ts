import assert from "node:assert/strict";
import { test } from "node:test";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { forwardTo, startFront } from "../support/fakes/front.ts";
import { createService } from "../support/servers/service.ts";
import { SENDERS } from "../world/chain/openBlock.ts";
import { TruthChain } from "../world/chain/truthChain.ts";
import { startWorldNode } from "../world/nodes/worldNode.ts";

type Fields = Readonly<Record<string, unknown>>;
const FEE_RECIPIENT = `0x${"ee".repeat(20)}`;

/** Wrong fields of older blocks, which a node returns in the batches that fill the block ring. */
const CHANGES: Readonly<Record<string, (block: Fields) => Fields>> = {
  "another fee recipient": (block) => ({ ...block, miner: FEE_RECIPIENT }),
  "no fee recipient": ({ miner: _, ...block }) => block,
  "a larger gas limit": (block) => ({ ...block, gasLimit: "0xffffffffff" }),
};

for (const [name, change] of Object.entries(CHANGES)) {
  test(`a simulation does not use a block with ${name} that the node returned for the ring`, async (t) => {
    const chain = await TruthChain.create(901, 1);
    const node = await startWorldNode(t, chain);
    let changed = 0;
    const front = await startFront(async (body) => {
      const { text } = await forwardTo(node.url, body);
      const responses: { readonly result?: Fields | null }[] | object = JSON.parse(text);
      if (!Array.isArray(responses)) {
        return text;
      }
      const isBlock = (result: unknown): result is Fields =>
        typeof result === "object" && result !== null && "miner" in result && "parentHash" in result;
      return JSON.stringify(
        responses.map((response) => {
          if (!isBlock(response.result)) {
            return response;
          }
          changed++;
          return { ...response, result: change(response.result) };
        }),
      );
    });
    t.after(() => front.close());
    const service = await createService({ nodes: [{ url: front.url }], blockTimeMs: 1_000, forks: "prague" });
    t.after(() => service.close());
    const number = BigInt(chain.head.number - 10);
    // An idle chain fills its ring slowly.
    const isFilled = async (): Promise<boolean> => {
      await rpc(service.url, "eth_blockNumber", []);
      return changed > 0;
    };
    await until(isFilled, "older blocks are read");
    const calls = [{ blockStateCalls: [{ calls: [{ to: SENDERS[0] }] }] }, `0x${number.toString(16)}`];
    const { body } = await rpc(service.url, "eth_simulateV1", calls);
    const { body: sealed } = await rpc(node.url, "eth_getBlockByNumber", [calls[1], false]);
    const [simulated] = body.result as readonly Fields[];
    const { miner, gasLimit } = sealed.result as Fields;
    assert.deepEqual({ miner: simulated?.miner, gasLimit: simulated?.gasLimit }, { miner, gasLimit });
  });
}
