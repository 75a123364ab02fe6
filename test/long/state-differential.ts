import { setTimeout as sleep } from "node:timers/promises";
import { createRandom } from "../support/builders/randomValues.ts";
import { ComparedReads, type ReadTally } from "../support/servers/comparedReads.ts";
import { createService, type Service } from "../support/servers/service.ts";
import { RandomStateBlocks } from "../support/standIn/randomStateBlocks.ts";
import { StandInChain } from "../support/standIn/standInChain.ts";
import { StandInNode } from "../support/standIn/standInNode.ts";
import { createStateReads } from "../support/standIn/stateReads.ts";
import { LONG_FAULTS } from "../world/planted/longFaults.ts";
import { comparedStep } from "./support/comparedStep.ts";
import { runDevnetVariant } from "./support/devnetVariant.ts";
import type { LongOptions } from "./support/memory.ts";
import { STAND_INS, type StandInVariant } from "./support/standInVariants.ts";
import { foundByService, stateCounts } from "./support/stateCounts.ts";

/** A run with a planted fault ends at its first difference. */
const planted = process.env.PLANTED === undefined ? undefined : LONG_FAULTS[process.env.FAULT ?? ""];
const WHOLE_SECONDS = 1_440;
const MIN_SECONDS = 5;
const CLIENTS = 8;
const FIRST_BLOCKS = 300;
const BLOCK_MS = 250;
const CHECK_MS = 200;
const MAX_REORG = 64;
const DEFAULT_SEED = 1;
/** `VARIANT=text` selects variants by a part of their name, `SEED=n` other blocks and reads. */
const only = process.env.VARIANT;
const seed = Number(process.env.SEED ?? DEFAULT_SEED);

interface Length {
  readonly seconds: number;
  readonly steps: number | undefined;
}

/** Mines and reorganises until the signal aborts, or for a number of steps. `stepped` is awaited after each. */
const drive = async (
  chain: StandInChain,
  blocks: RandomStateBlocks,
  { steps = Number.POSITIVE_INFINITY, stepped }: { readonly steps: number | undefined; stepped(): Promise<void> },
  signal: AbortSignal,
): Promise<number> => {
  const random = createRandom(seed + 1);
  let reorganisations = 0;
  for (let step = 0; step < steps && !signal.aborted; step++) {
    const chance = random();
    let count = 1;
    if (chance < 0.15) {
      const depth = 1 + Math.floor(random() * (chance < 0.02 ? MAX_REORG : 4));
      chain.rewind(depth);
      count = depth + Math.floor(random() * 2);
      reorganisations++;
    }
    for (let index = 0; index < count; index++) {
      await blocks.mine();
    }
    await sleep(random() * 2 * BLOCK_MS);
    await stepped();
  }
  return reorganisations;
};

const isFound = async ({ tally }: { readonly tally: ReadTally }, service: Service): Promise<boolean> => {
  if (planted === undefined) {
    return false;
  }
  return (await foundByService(service)) > 0 || (!planted.isFoundByService && tally.differences.length > 0);
};

const STATE_READS = ["eth_getBalance", "eth_getTransactionCount", "eth_getCode", "eth_getStorageAt"];

const runStandIn = async (variant: StandInVariant, { seconds, steps }: Length) => {
  const { fork, traces, hasAccessLists, pushes, refunds } = variant;
  const chain = new StandInChain(fork);
  const blocks = new RandomStateBlocks(chain, seed, refunds);
  blocks.genesis();
  for (let index = 0; index < FIRST_BLOCKS; index++) {
    await blocks.mine();
  }
  const node = await StandInNode.start({ chain, traces, hasAccessLists, pushes });
  const service = await createService({
    nodes: [{ url: node.url, ...(pushes && { wsUrl: node.wsUrl }) }],
    blockTimeMs: BLOCK_MS,
    forks: fork === "shanghai" ? "shanghai" : "prague",
    ...(traces && !hasAccessLists && { state: { source: "trace" } }),
  });
  const compared = new ComparedReads(chain, service, createStateReads(chain), seed);
  const ending = new AbortController();
  const { signal } = ending;
  const stepped = async () => (steps === undefined ? undefined : comparedStep(chain, service, compared.tally, signal));
  try {
    const driving = drive(chain, blocks, { steps, stepped }, signal);
    const clients = Array.from({ length: CLIENTS }, () => compared.run(signal));
    const endMs = performance.now() + seconds * 1_000;
    await (steps === undefined ? undefined : driving);
    while (steps === undefined && performance.now() < endMs && !(await isFound(compared, service))) {
      await sleep(CHECK_MS);
    }
    ending.abort();
    const [reorganisations] = await Promise.all([driving, ...clients]);
    const { tally } = compared;
    const forwarded = STATE_READS.reduce((sum, method) => sum + (node.calls.get(method) ?? 0), 0);
    return {
      ...tally,
      errors: tally.errors.length,
      blocks: chain.height - FIRST_BLOCKS,
      reorganisations,
      ...(await stateCounts(service)),
      localShare: Number((1 - forwarded / Math.max(1, tally.comparisons)).toFixed(3)),
    };
  } finally {
    ending.abort();
    await service.close();
    await node.close();
  }
};

interface VariantResult {
  readonly comparisons: number;
  readonly errors: number;
  readonly differences: readonly unknown[];
  readonly foundByService: number;
}

interface Variant {
  readonly name: string;
  readonly run: (length: Length) => Promise<VariantResult>;
}

const VARIANTS: readonly Variant[] = [
  ...STAND_INS.map((variant) => ({
    name: variant.name,
    run: (length: Length) => runStandIn(variant, length),
  })),
  ...(["feed", "trace"] as const).map((source) => ({
    name: `${source} of a devnet`,
    run: (length: Length) => runDevnetVariant({ ...length, source, seed }),
  })),
];

export const takesSteps = true;

/**
 * Compares random state reads with a node at the same hash, while blocks arrive and are reorganised. A step is a block or a
 * reorganisation that the service serves; on a devnet it is a block.
 */
export const long = async ({ seconds, steps }: LongOptions) => {
  const chosen = VARIANTS.filter(({ name }) => only === undefined || name.includes(only));
  const each = Math.max((seconds ?? WHOLE_SECONDS) / chosen.length, MIN_SECONDS);
  const variants: Record<string, unknown> = {};
  let passed = true;
  for (const variant of chosen) {
    const result = await variant.run({ seconds: each, steps });
    console.log(variant.name, JSON.stringify(result));
    variants[variant.name] = result;
    const { comparisons, errors, differences, foundByService: found } = result;
    passed &&= differences.length === 0 && found === 0 && comparisons > errors && (errors === 0 || steps !== undefined);
  }
  return { claim: "no state read differs from the node at the same hash", seed, variants, passed };
};
