import type { Heads } from "../../../src/core/heads.ts";
import { ask } from "../clients/askAll.ts";
import {
  ABOVE_HEAD,
  type BlockTruth,
  callOf,
  comparableFees,
  comparableLogs,
  isAboveHeadError,
  isOtherBranchError,
  type ViewQuestion,
} from "../clients/blockTruth.ts";
import type { ForkingNode } from "../fakes/forkingNode.ts";
import type { Service } from "./service.ts";

interface HeldView {
  readonly fromMs: number;
  readonly heads: Heads;
}

interface RecordedAnswer {
  readonly question: ViewQuestion;
  readonly startMs: number;
  readonly endMs: number;
  readonly result: string | undefined;
  readonly text: string;
  readonly cacheStatus: string;
}

/** A response that is correct in no view that the replica had during the request. */
export interface Untrue {
  readonly question: string;
  readonly cacheStatus: string;
  readonly text: string;
  readonly expected: readonly (string | undefined)[];
  readonly tookMs: number;
  /** The heads of the views that the replica held while it was asked. */
  readonly heads: readonly string[];
  /** It is an error, although an honest node had these views for a while. */
  readonly isAvoidable: boolean;
}

/** One forebay with all its views and responses. */
export interface RecordedReplica {
  readonly latest: Heads["latest"];
  readonly answers: number;
  readonly hits: number;
  readonly views: number;
  /** Accepted errors of requests whose block is on another branch, and those of a time in which an honest node had the view. */
  readonly branchErrors: { readonly all: number; readonly avoidable: number };
  /** The answer that took longest. */
  readonly slowest: { readonly method: string; readonly tookMs: number };
  ask(question: ViewQuestion): Promise<void>;
  /** Returns the responses since the last check that are correct in no view. */
  check(truth: BlockTruth): readonly Untrue[];
}

/** Longer than any request takes. */
const KEPT_MS = 60_000;
/** The longest pause between two attempts: a delay, and a refresh of the heads (RETRY_LIMITS.view). */
const ANSWER_MS = 900;
/** Characters of a hash that distinguish blocks. */
const HASH_START = 10;

const errorOf = (text: string): string => {
  const { error }: { error?: { message: string } } = JSON.parse(text);
  return error?.message ?? "";
};

/** Returns the result in the form of BlockTruth. Undefined for an error that no view makes true. */
const comparableAnswer = ({ question, result, text }: RecordedAnswer): string | undefined => {
  if (result === undefined) {
    return isAboveHeadError(errorOf(text)) ? ABOVE_HEAD : undefined;
  }
  return comparable(question, result);
};

const comparable = (question: ViewQuestion, result: string): string => {
  if (question.kind === "logs") {
    return comparableLogs(result);
  }
  return callOf(question).method === "eth_feeHistory" ? comparableFees(result) : result;
};

/** Records a replica in front of these honest nodes. */
export const recordReplica = (service: Service, nodes: readonly ForkingNode[]): RecordedReplica => {
  const heads = service.chains[0]?.upstreams.heads;
  const first = heads?.current();
  if (heads === undefined || first === undefined) {
    throw new Error("a forebay without heads");
  }
  let views: HeldView[] = [{ fromMs: performance.now(), heads: first }];
  let answers: RecordedAnswer[] = [];
  let [count, hits, viewCount] = [0, 0, 1];
  const branchErrors = { all: 0, avoidable: 0 };
  let slowest = { method: "", tookMs: 0 };
  heads.subscribe((change) => {
    views.push({ fromMs: performance.now(), heads: change.heads });
    viewCount++;
  });
  const newest = (): Heads => views.at(-1)?.heads ?? first;

  const heldWhile = ({ startMs, endMs }: RecordedAnswer): Heads[] =>
    views
      .filter(({ fromMs }, index) => fromMs <= endMs && (views[index + 1]?.fromMs ?? Infinity) >= startMs)
      .map((view) => view.heads);

  /** Whether an honest node had each of the views for a while, so that it could answer. */
  const couldAnswer = (truth: BlockTruth, { startMs, endMs }: RecordedAnswer, held: readonly Heads[]): boolean =>
    nodes
      .flatMap((node) => node.headsDuring(startMs, endMs, ANSWER_MS))
      .some((head) => held.every((view) => truth.hasView(head, view)));

  return {
    branchErrors,
    get latest() {
      return newest().latest;
    },
    get answers() {
      return count;
    },
    get hits() {
      return hits;
    },
    get views() {
      return viewCount;
    },
    get slowest() {
      return slowest;
    },
    ask: async (question) => {
      const call = callOf(question);
      const startMs = performance.now();
      const { result, text, cacheStatus } = await ask(service.url, call);
      const endMs = performance.now();
      answers.push({ question, startMs, endMs, result, text, cacheStatus });
      count++;
      const tookMs = Math.round(endMs - startMs);
      if (tookMs > slowest.tookMs) {
        slowest = { method: call.method, tookMs };
      }
      if (cacheStatus.startsWith("forebay; hit")) {
        hits++;
      }
    },
    check: (truth) => {
      const untrue = answers.flatMap((answer): Untrue[] => {
        const { question, text, cacheStatus } = answer;
        const given = comparableAnswer(answer);
        const held = heldWhile(answer);
        const expected = held.map((view) => truth.answer(question, view));
        const isAboveHead = answer.result === "null" && expected.includes(ABOVE_HEAD);
        const isOfOtherBranch =
          answer.result === undefined &&
          isOtherBranchError(question, errorOf(text)) &&
          held.some((view) => truth.isOnOtherBranch(question, view));
        const isAvoidable = answer.result === undefined && couldAnswer(truth, answer, held);
        branchErrors.all += isOfOtherBranch ? 1 : 0;
        branchErrors.avoidable += isOfOtherBranch && isAvoidable ? 1 : 0;
        if (isAboveHead || isOfOtherBranch || (given !== undefined && expected.includes(given))) {
          return [];
        }
        const { method, params } = callOf(question);
        const tookMs = Math.round(answer.endMs - answer.startMs);
        const heads = held.map(({ latest }) => `${latest.number} ${latest.hash.slice(0, HASH_START)}`);
        return [
          { question: `${method} ${JSON.stringify(params)}`, cacheStatus, text, expected, tookMs, heads, isAvoidable },
        ];
      });
      answers = [];
      // Requests in flight began in views of the last seconds.
      const keptFromMs = performance.now() - KEPT_MS;
      views = views.filter((_, index) => (views[index + 1]?.fromMs ?? Infinity) >= keptFromMs);
      return untrue;
    },
  };
};
