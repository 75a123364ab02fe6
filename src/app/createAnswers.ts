import type { ChainConfig } from "../config/schema.ts";
import type { BlockId, HeaderFields } from "../core/heads.ts";
import type { StateFetch } from "../core/stateReader.ts";
import type { Address } from "../ethereum/hex.ts";
import { parseParent } from "../simulation/parentBlock.ts";
import { AnswerLearner } from "../state/answers/answerLearner.ts";
import { Answers } from "../state/answers/answers.ts";
import { ANSWER_METHODS, type RunCall } from "../state/answers/callRun.ts";
import { LearningBudget } from "../state/answers/learningBudget.ts";
import { NodeDefaultsCache } from "../state/answers/nodeDefaultsCache.ts";
import { ValueLoader } from "../state/answers/valueLoader.ts";
import type { BlockValues } from "../state/blockValues.ts";
import { BulkReader } from "../state/bulkReader.ts";
import type { StateEconomics } from "../state/stateEconomics.ts";
import type { StateFollower } from "../state/stateFollower.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Execution } from "./createExecution.ts";
import type { Upstreams } from "./upstreams.ts";

export interface AnswersOfChainOptions {
  readonly config: ChainConfig;
  readonly upstreams: Upstreams;
  readonly execution: Execution;
  readonly values: BlockValues;
  readonly follower: StateFollower;
  readonly economics: StateEconomics;
  readonly fetch: StateFetch;
  readonly never: ReadonlySet<Address>;
  readonly maxBytes: number;
  /** Aborts when the chain is closed. */
  readonly signal: AbortSignal;
  readonly telemetry: Telemetry;
}

const PROBE_TIMEOUT_MS = 5_000;
const nowMs = (): number => performance.now();
const decoder = new TextDecoder();

type HeaderOf = (block: BlockId) => HeaderFields | undefined;

const headerReader =
  ({ heads }: Upstreams): HeaderOf =>
  ({ number, hash }) => {
    const current = heads.current();
    return current?.at(number)?.hash === hash ? current.header(number) : undefined;
  };

const createRun =
  ({ execution, signal }: AnswersOfChainOptions, headerOf: HeaderOf): RunCall =>
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
  { upstreams, economics: { ledger, unitsOf } }: AnswersOfChainOptions,
  headerOf: HeaderOf,
): NodeDefaultsCache =>
  new NodeDefaultsCache({
    callNode: async (name, calls) => {
      const node = upstreams.nodes.find((each) => each.name === name);
      const reach = {
        signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
        deadlineMs: nowMs() + PROBE_TIMEOUT_MS,
      };
      const outcomes = (await node?.batch(calls, reach)) ?? [];
      return outcomes.map((outcome) =>
        "body" in outcome && outcome.body instanceof Uint8Array ? JSON.parse(decoder.decode(outcome.body)) : outcome,
      );
    },
    headerOf,
    nowMs,
    onSpent: (calls) => ledger.spend("learning", calls * unitsOf("eth_call")),
  });

/** Creates the answers to calls of one chain. `close` ends their learning. */
export const createAnswers = (options: AnswersOfChainOptions): { readonly answers: Answers; close(): void } => {
  const { config, upstreams, values, follower, economics, fetch, never, maxBytes, telemetry } = options;
  const { policy, ledger, unitsOf } = economics;
  const { metrics } = telemetry;
  const chain = config.name;
  const headerOf = headerReader(upstreams);
  const budget = new LearningBudget();
  const spend = (units: number): void => {
    ledger.spend("learning", units);
    budget.spend(units);
  };
  const defaults = createDefaults(options, headerOf);
  const reader = new BulkReader({ fetch, unitsOf, nowMs });
  const learner = new AnswerLearner({
    values,
    follower,
    loader: new ValueLoader({ values, follower, reader, fetch, unitsOf, onSpent: spend }),
    budget,
    run: createRun(options, headerOf),
    never,
    headerOf,
    defaultsOf: (node, block) => defaults.get(node, block),
    onLearned: (sighting, answer) => answers.learned(sighting, answer),
    onRefused: (sighting, refusal) => answers.refused(sighting, refusal),
  });
  const lookups = (outcome: "hit" | "miss") =>
    new Map(ANSWER_METHODS.map((method) => [method, metrics.stateLookups.series({ chain, method, outcome })]));
  const hits = lookups("hit");
  const misses = lookups("miss");
  const answers = new Answers({
    values,
    follower,
    policy,
    learner,
    waitMs: config.state.waitMs,
    blockTimeMs: () => upstreams.heads.blockTimeMs,
    maxBytes,
    onLookup: (method, isHit) => {
      (isHit ? hits : misses).get(method)?.inc();
      if (!isHit) {
        budget.earn(unitsOf(method));
      }
    },
    onWait: (result) => metrics.stateWaits.inc({ chain, result }),
    onEvent: (method, event) => metrics.stateAnswers.inc({ chain, method, event }),
  });
  return { answers, close: () => learner.close() };
};
