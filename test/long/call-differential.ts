import { setTimeout as sleep } from "node:timers/promises";
import { createRandom } from "../support/builders/randomValues.ts";
import { ComparedReads } from "../support/servers/comparedReads.ts";
import { createService, type Service } from "../support/servers/service.ts";
import { createCallReads } from "../support/standIn/randomCalls.ts";
import { RandomStateBlocks } from "../support/standIn/randomStateBlocks.ts";
import { StandInCalls } from "../support/standIn/standInCalls.ts";
import { StandInChain } from "../support/standIn/standInChain.ts";
import { StandInNode } from "../support/standIn/standInNode.ts";
import { ComparedAuthorizations } from "./support/comparedAuthorizations.ts";
import { comparedStep } from "./support/comparedStep.ts";
import type { LongOptions } from "./support/memory.ts";
import { STAND_INS, type StandInVariant } from "./support/standInVariants.ts";

const WHOLE_SECONDS = 960;
const MIN_SECONDS = 5;
const CLIENTS = 6;
const FIRST_BLOCKS = 60;
const BLOCK_MS = 250;
const MAX_REORG = 64;
const LOOK_MS = 250;
/** On a busy machine, a variant that has judged nothing yet runs this much longer. */
const MAX_LONGER_MS = 30_000;
/** Write sets cost little, so that they are read for a few clients. */
const UNITS = { debug_traceBlockByHash: 2, eth_getBlockByHash: 0 };
/** `VARIANT=text` selects variants by a part of their name, `SEED=n` other blocks and calls. */
const only = process.env.VARIANT;
const seed = Number(process.env.SEED ?? 1);
/** A run with a planted fault ends when it is found. */
const isPlanted = process.env.PLANTED !== undefined;

/**
 * Mines and reorganises until the signal aborts, or for a number of steps. `stepped` is awaited after each. Returns the number of
 * reorganisations.
 */
const drive = async (
  chain: StandInChain,
  blocks: RandomStateBlocks,
  { steps = Number.POSITIVE_INFINITY, stepped }: { readonly steps: number | undefined; stepped(): Promise<void> },
  signal: AbortSignal,
): Promise<number> => {
  const random = createRandom(seed + 1);
  let reorganisations = 0;
  for (let step = 0; step < steps && !signal.aborted; step++) {
    const isReorganised = random() < 0.15;
    const depth = isReorganised ? 1 + Math.floor(random() ** 4 * Math.min(MAX_REORG, chain.height - 2)) : 0;
    if (depth > 0) {
      chain.rewind(depth);
      reorganisations++;
    }
    for (let index = 0; index <= depth; index++) {
      await blocks.mine();
    }
    await sleep(random() * 2 * BLOCK_MS);
    await stepped();
  }
  return reorganisations;
};

const eventsOf = async ({ telemetry }: Service): Promise<Record<string, number>> => {
  const { values } = await telemetry.metrics.stateAnswers.get();
  return Object.fromEntries(values.flatMap(({ labels, value }) => (value > 0 ? [[String(labels.event), value]] : [])));
};

interface Judged {
  readonly comparisons: number;
  readonly authorizations: { readonly comparisons: number } | undefined;
  readonly events: Readonly<Record<string, number>>;
}

/** Whether calls and authorizations were compared, and a learned answer was used at a later block. */
const isJudged = ({ comparisons, authorizations, events }: Judged): boolean =>
  comparisons > 0 && (authorizations === undefined || authorizations.comparisons > 0) && (events.reused ?? 0) > 0;

const runVariant = async (
  { fork, traces, hasAccessLists, pushes }: StandInVariant,
  seconds: number,
  steps: number | undefined,
) => {
  const chain = new StandInChain(fork);
  const blocks = new RandomStateBlocks(chain, seed);
  blocks.genesis();
  for (let index = 0; index < FIRST_BLOCKS; index++) {
    await blocks.mine();
  }
  const execution = await StandInCalls.create(chain);
  const node = await StandInNode.start({ chain, execution, traces, hasAccessLists, pushes });
  const service = await createService({
    nodes: [{ url: node.url, ...(pushes && { wsUrl: node.wsUrl }) }],
    blockTimeMs: BLOCK_MS,
    forks: fork,
    state: { units: UNITS, source: hasAccessLists ? "accessList" : "trace" },
  });
  const compared = new ComparedReads(chain, service, createCallReads(chain, execution, createRandom(seed)), seed);
  const authorizations = await ComparedAuthorizations.create(chain, service.url, seed);
  const ending = new AbortController();
  const { signal } = ending;
  const stepped = async () => {
    for (const { tally } of steps === undefined ? [] : [compared, authorizations ?? compared]) {
      await comparedStep(chain, service, tally, signal);
    }
  };
  try {
    const driving = drive(chain, blocks, { steps, stepped }, signal);
    const clients = [...Array(CLIENTS).fill(compared), authorizations].map((each) => each?.run(signal));
    const startMs = performance.now();
    const tally = async () => ({
      ...{ ...compared.tally, authorizations: authorizations?.tally },
      events: await eventsOf(service),
    });
    const isOver = async (): Promise<boolean> => {
      const leftMs = startMs + seconds * 1_000 - performance.now();
      return leftMs < -MAX_LONGER_MS || (leftMs <= 0 && isJudged(await tally()));
    };
    const isFound = (): boolean => isPlanted && (authorizations?.tally.differences.length ?? 0) > 0;
    await (steps === undefined ? undefined : driving);
    while (steps === undefined && !isFound() && !(await isOver())) {
      await sleep(LOOK_MS);
    }
    ending.abort();
    const [reorganisations] = await Promise.all([driving, ...clients]);
    return { ...(await tally()), blocks: chain.height - FIRST_BLOCKS, reorganisations };
  } finally {
    ending.abort();
    await service.close();
    await node.close();
  }
};

export const takesSteps = true;

/**
 * Compares calls with executions on the state of the same hash, while blocks arrive and are reorganised. Simulated authorizations
 * are compared with the reference engine. A step is a block or a reorganisation that the service serves.
 */
export const long = async ({ seconds, steps }: LongOptions) => {
  const chosen = STAND_INS.filter(({ name }) => only === undefined || name.includes(only));
  const each = Math.max((seconds ?? WHOLE_SECONDS) / chosen.length, MIN_SECONDS);
  const variants: Record<string, unknown> = {};
  let passed = true;
  for (const variant of chosen) {
    const result = await runVariant(variant, each, steps);
    console.log(variant.name, JSON.stringify(result));
    variants[variant.name] = result;
    const { authorizations, events } = result;
    const areEqual = [result, ...(authorizations === undefined ? [] : [authorizations])].every(
      ({ differences }) => differences.length === 0,
    );
    const { comparisons, errors } = result;
    passed &&= areEqual && events.differed === undefined;
    passed &&= steps === undefined ? isJudged(result) : comparisons > errors.length;
  }
  return { claim: "no call differs from an execution on the state of the same hash", seed, variants, passed };
};
