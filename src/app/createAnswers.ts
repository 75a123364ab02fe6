import type { ChainConfig } from "../config/schema.ts";
import type { BlockId, HeaderFields } from "../core/heads.ts";
import type { StateFetch } from "../core/stateReader.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import { parseParent } from "../simulation/parentBlock.ts";
import { AnswerDifferences } from "../state/answers/answerDifferences.ts";
import { AnswerLearner } from "../state/answers/answerLearner.ts";
import { AnswerReruns } from "../state/answers/answerReruns.ts";
import { AnswerSamples } from "../state/answers/answerSamples.ts";
import { Answers } from "../state/answers/answers.ts";
import { AnswerTable } from "../state/answers/answerTable.ts";
import { ANSWER_METHODS, type AnswerMethod, type RunCall } from "../state/answers/callRun.ts";
import { ForwardedContracts } from "../state/answers/forwardedContracts.ts";
import { NodeDefaultsCache } from "../state/answers/nodeDefaultsCache.ts";
import { findWrongValue } from "../state/answers/readSetCheck.ts";
import { ValueLoader } from "../state/answers/valueLoader.ts";
import type { BlockValues } from "../state/blockValues.ts";
import { BulkReader } from "../state/bulkReader.ts";
import type { DifferenceHandler } from "../state/differenceHandler.ts";
import type { StateCost } from "../state/stateCost.ts";
import type { StateFollower } from "../state/stateFollower.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { hasOwnHash } from "../verification/checkHeader.ts";
import type { ChainExecution } from "./createExecution.ts";
import type { ReadPipeline } from "./createReadPipeline.ts";
import type { Upstreams } from "./upstreams.ts";

export interface AnswersOfChainOptions {
  readonly config: ChainConfig;
  readonly upstreams: Upstreams;
  readonly execution: ChainExecution;
  readonly values: BlockValues;
  readonly follower: StateFollower;
  readonly cost: StateCost;
  readonly fetch: StateFetch;
  readonly pipeline: Pick<ReadPipeline, "forget">;
  readonly differences: Pick<DifferenceHandler, "handle">;
  /** Accounts whose values are always read from a node. */
  readonly never: ReadonlySet<Address>;
  readonly maxBytes: number;
  /** Aborts when the chain is closed. */
  readonly signal: AbortSignal;
  readonly telemetry: Telemetry;
  /** Called when all answers are dropped. */
  onDropped(): void;
}

const PROBE_TIMEOUT_MS = 5_000;
const nowMs = (): number => performance.now();
const decoder = new TextDecoder();

/** Returns the headers and hashes of canonical blocks. */
const createBlockLookups = ({ heads }: Upstreams) => {
  const canonical = ({ number, hash }: BlockId) => {
    const current = heads.current();
    return current?.at(number)?.hash === hash ? current : undefined;
  };
  return {
    // The hash of a header in the ring was not computed when it entered.
    headerOf: (block: BlockId): HeaderFields | undefined => {
      const header = canonical(block)?.header(block.number);
      return header !== undefined && hasOwnHash(header) ? header : undefined;
    },
    ancestorHash: (number: bigint, block: BlockId): Hash | undefined => canonical(block)?.at(number)?.hash,
  };
};

type BlockLookups = ReturnType<typeof createBlockLookups>;

const createRun =
  ({ execution, signal }: AnswersOfChainOptions, { headerOf }: BlockLookups): RunCall =>
  async ({ method, paramsText, block, source, gasCap }) => {
    const header = headerOf(block);
    if (header === undefined) {
      throw new Error(`block ${block.hash} is not canonical`);
    }
    const kind = method === "eth_call" ? "repeatedCall" : "estimateGas";
    return execution.simulator.trace({
      ...{ kind, paramsText, gasCap, signal },
      base: { block: parseParent(header), source },
    });
  };

const createDefaults = (
  { upstreams, cost }: AnswersOfChainOptions,
  { headerOf }: BlockLookups,
  table: AnswerTable,
): NodeDefaultsCache =>
  new NodeDefaultsCache({
    callNode: async (name, calls) => {
      const node = upstreams.nodes.find((each) => each.name === name);
      const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
      const outcomes = await node?.batch(calls, { signal, deadlineMs: nowMs() + PROBE_TIMEOUT_MS });
      return (outcomes ?? []).map((outcome) =>
        "body" in outcome && outcome.body instanceof Uint8Array ? JSON.parse(decoder.decode(outcome.body)) : outcome,
      );
    },
    headerOf,
    nowMs,
    onOutdated: () => table.clear(),
    onSpent: (calls) => cost.spend("learning", calls * cost.unitsOf("eth_call")),
  });

const createTable = ({
  config: { name: chain },
  values,
  follower,
  cost: { usedKeys },
  maxBytes,
  telemetry: { metrics },
  onDropped,
}: AnswersOfChainOptions): AnswerTable =>
  new AnswerTable({
    ...{ values, follower, maxBytes, nowMs },
    onSurvived: (method) => metrics.stateAnswers.inc({ chain, method, event: "survived" }),
    onUsed: ({ keys }, { number }) => {
      for (const key of keys) {
        usedKeys.record(key, number);
      }
    },
    onCleared: onDropped,
  });

/** Returns the function that removes a node's response to a call from the cache. */
const createForget =
  ({ upstreams, pipeline }: AnswersOfChainOptions) =>
  ({ key, block }: { readonly key: string; readonly block: BlockId }): void => {
    const heads = upstreams.heads.current();
    if (heads !== undefined) {
      pipeline.forget({ canonicalParams: key, block }, heads);
    }
  };

/** Creates the samples, and the reaction to a difference. */
const createComparisons = (
  options: AnswersOfChainOptions,
  table: AnswerTable,
  forwarded: ForwardedContracts,
  reader: BulkReader,
) => {
  const { config, values, follower, cost, fetch, telemetry } = options;
  const chain = config.name;
  const onSpent = (units: number): void => cost.spend("sample", units);
  const answerDifferences = new AnswerDifferences({
    ...{ chain, table, forwarded, follower, telemetry },
    findWrongValue: ({ reads, block }) => findWrongValue({ values, reader, onSpent }, reads, block),
    onWrongValue: (difference) => options.differences.handle(difference, "sample"),
  });
  const samples = new AnswerSamples({
    ...{ fetch, cost },
    onCompared: (method) => telemetry.metrics.stateAnswers.inc({ chain, method, event: "sampled" }),
    onDifference: (answer, actual) => void answerDifferences.report(answer, actual),
    onDoubted: createForget(options),
  });
  return samples;
};

const createEvents = ({ config: { name: chain }, telemetry: { metrics } }: AnswersOfChainOptions) => {
  const lookups = (outcome: "hit" | "miss") =>
    new Map(ANSWER_METHODS.map((method) => [method, metrics.stateLookups.series({ chain, method, outcome })]));
  const hits = lookups("hit");
  const misses = lookups("miss");
  return {
    onLookup: (method: AnswerMethod, isHit: boolean) => {
      (isHit ? hits : misses).get(method)?.inc();
    },
  };
};

/** Creates the answers to calls of one chain. `close` ends their learning. */
export const createAnswers = (options: AnswersOfChainOptions): { readonly answers: Answers; close(): void } => {
  const { config, upstreams, values, follower, cost, fetch, never, telemetry } = options;
  const { unitsOf } = cost;
  const { metrics } = telemetry;
  const chain = config.name;
  const lookups = createBlockLookups(upstreams);
  const table = createTable(options);
  const forwarded = new ForwardedContracts(values);
  const reader = new BulkReader({ fetch, unitsOf, nowMs });
  const defaults = createDefaults(options, lookups, table);
  const samples = createComparisons(options, table, forwarded, reader);
  const events = createEvents(options);
  const shared = { values, follower, run: createRun(options, lookups), never, forwarded, ...lookups };
  const learner = new AnswerLearner({
    ...shared,
    loader: new ValueLoader({ values, follower, reader, fetch, unitsOf }),
    cost,
    defaultsOf: (node, block) => defaults.get(node, block),
    onLearned: ({ key, method }, answer) => {
      metrics.stateAnswers.inc({ chain, method, event: "learned" });
      table.store(key, answer);
    },
    onRefused: ({ key, method, block }, event) => {
      metrics.stateAnswers.inc({ chain, method, event });
      table.refuse(key, block, event === "budget" || event === "late");
    },
    onDoubted: createForget(options),
  });
  const answers = new Answers({
    ...{ table, values, follower, cost, learner, ...events },
    reruns: new AnswerReruns({ ...shared, knownDefaults: (node, block) => defaults.known(node, block) }),
    waitMs: config.state.waitMs,
    blockTimeMs: () => upstreams.heads.blockTimeMs,
    onWait: (result) => metrics.stateWaits.inc({ chain, result }),
    onEvent: (method, event) => metrics.stateAnswers.inc({ chain, method, event }),
    onLocalAnswer: (answer) => samples.consider(answer),
    onCompared: (answer, actual) => samples.compare(answer, JSON.parse(decoder.decode(actual))),
  });
  return { answers, close: () => learner.close() };
};
