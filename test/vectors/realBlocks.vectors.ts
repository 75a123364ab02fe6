import assert from "node:assert/strict";
import { test } from "node:test";
import { rulesAt } from "../../src/chain/rules.ts";
import type { StateChanges } from "../../src/chain/stateReader.ts";
import { createNodeState } from "../../src/evm/nodeState.ts";
import { createEngines } from "../../src/evm/referenceEngine.ts";
import { type Flashblock, parseMessage } from "../../src/feed/message.ts";
import type { Work } from "../../src/pending/execution.ts";
import { collapse, type Layer, toLayer } from "../../src/pending/layers.ts";
import { createRunner } from "../../src/pending/runner.ts";
import { createWitnessNode } from "../support/witnessNode.ts";
import { type RealBlocks, readRecordedBuilder } from "./realBlocks.ts";

const messagesOf = ({ frames }: RealBlocks): readonly Flashblock[] =>
  frames.map((frame) => {
    const parsed = parseMessage(frame);
    assert.ok("message" in parsed);
    return parsed.message;
  });

const worksOf = (messages: readonly Flashblock[]): readonly Work[] => {
  let environment: Work["environment"] | undefined;
  return messages.map(({ base, index, diff }, at): Work => {
    if (base) {
      const { blockNumber: number, ...rest } = base;
      environment = { number, ...rest };
    }
    assert.ok(environment);
    const { transactions, gasUsed, logsBloom, receiptsRoot } = diff;
    const told = { gasUsed, logsBloom, receiptsRoot };
    return {
      id: at + 1,
      before: at === 0 ? undefined : at,
      environment,
      index,
      transactions,
      hasPostExec: false,
      told,
    };
  });
};

const changesOf = (layer: Layer): StateChanges =>
  new Map([...layer].map(([address, { written, slots }]) => [address, { ...written, slots: [...slots] }]));

/** Runs all messages on the state below the first block; the writes of each block. */
const runAll = async (real: RealBlocks) => {
  const { parent } = real;
  const node = createWitnessNode(real);
  const state = createNodeState({ fetch: node.fetch, maxBytes: 64 * 1024 * 1024 });
  const base = { number: BigInt(parent.number), hash: parent.hash };
  const runner = createRunner(
    {
      fetch: (block, keys) => state.at(block).read(keys, AbortSignal.timeout(60_000)),
      engine: createEngines(),
      codes: new Map(),
      isNative: () => false,
    },
    base,
  );
  const layers = new Map<bigint, Layer[]>();
  for (const work of worksOf(messagesOf(real))) {
    const { number, timestamp } = work.environment;
    const { unproven, outcome } = await runner.run(work, rulesAt(real.forks, number, timestamp));
    assert.equal(unproven, undefined, `${number}-${work.index}`);
    assert.ok(outcome);
    layers.set(number, [...(layers.get(number) ?? []), toLayer(outcome.changes)]);
  }
  return layers;
};

test("a recorded builder: every message verifies, each block's writes give its state root", async () => {
  const real = readRecordedBuilder();
  const layers = await runAll(real);
  for (const [number, written] of layers) {
    const at = real.blocks.findIndex((block) => BigInt(block.number) === number);
    const block = real.blocks[at];
    const before = real.states.get(real.blocks[at - 1]?.hash ?? "0x");
    assert.ok(block && before);
    assert.equal(await before.rootAfter(changesOf(collapse(written))), block.stateRoot);
  }
});
