import { isDeepStrictEqual } from "node:util";
import type { Heads } from "../../../src/core/heads.ts";
import { ask } from "../../support/clients/askAll.ts";
import type { Service } from "../../support/servers/service.ts";
import type { TruthBlock } from "../chain/truthBlock.ts";
import type { TruthChain } from "../chain/truthChain.ts";
import { outcomeOf } from "../judge/outcome.ts";
import type { BranchNode } from "./branchNode.ts";
import { isOnOtherBranch, isOtherBranchError, type ViewQuestion } from "./viewQuestion.ts";

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
  readonly expected: readonly string[];
  readonly tookMs: number;
  /** The heads of the views that the replica held while it was asked. */
  readonly heads: readonly string[];
  readonly isError: boolean;
  /** The replica had only heads that a lying node invented: other nodes lose their vote after a time without a new head. */
  readonly isOfInvented: boolean;
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
  check(): readonly Untrue[];
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

const ABOVE_HEAD_ERRORS = [/^header not found$/, /^block range extends beyond current head block/];

/** Whether an answer says that the block is above the head: the client has its number from an earlier view. */
const saysAboveHead = ({ result, text }: RecordedAnswer): boolean =>
  result === undefined ? ABOVE_HEAD_ERRORS.some((error) => error.test(errorOf(text))) : result === "null";

/** Returns the text of the correct result in a view with this head. */
const expectedIn = (chain: TruthChain, { method, params }: ViewQuestion, head: TruthBlock | undefined): string => {
  const outcome = head && outcomeOf(chain, head, { method, params });
  return outcome === undefined || "missing" in outcome ? "none" : JSON.stringify(outcome.result);
};

const isEqual = (result: string | undefined, expected: string): boolean =>
  result !== undefined && expected !== "none" && isDeepStrictEqual(JSON.parse(result), JSON.parse(expected));

/** Records a replica in front of these honest nodes. */
export const recordReplica = (service: Service, chain: TruthChain, nodes: readonly BranchNode[]): RecordedReplica => {
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

  /** The heads of the views that the replica held during a request. Undefined: no block has this hash. */
  const heldWhile = ({ startMs, endMs }: RecordedAnswer): (TruthBlock | undefined)[] =>
    views
      .filter(({ fromMs }, index) => fromMs <= endMs && (views[index + 1]?.fromMs ?? Infinity) >= startMs)
      .map((view) => chain.block(view.heads.latest.hash));

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
      const { method, params } = question;
      const startMs = performance.now();
      const { result, text, cacheStatus } = await ask(service.url, { method, params });
      const endMs = performance.now();
      answers.push({ question, startMs, endMs, result, text, cacheStatus });
      count++;
      const tookMs = Math.round(endMs - startMs);
      if (tookMs > slowest.tookMs) {
        slowest = { method, tookMs };
      }
      if (cacheStatus.startsWith("forebay; hit")) {
        hits++;
      }
    },
    check: () => {
      const untrue = answers.flatMap((answer): Untrue[] => {
        const { question, result, text, cacheStatus, startMs, endMs } = answer;
        const during = heldWhile(answer);
        const held = during.filter((head) => head !== undefined);
        const expected = during.map((head) => expectedIn(chain, question, head));
        const isAboveHead = saysAboveHead(answer) && held.some(({ number }) => (question.to ?? 0) > number);
        const isOfOtherBranch =
          result === undefined &&
          isOtherBranchError(question, errorOf(text)) &&
          held.some((head) => isOnOtherBranch(chain, question, head));
        // It is an error, although an honest node had each of the views for a while.
        const isAvoidable =
          result === undefined &&
          held.length === during.length &&
          nodes.some((node) => node.had(held, startMs, endMs, ANSWER_MS));
        branchErrors.all += isOfOtherBranch ? 1 : 0;
        branchErrors.avoidable += isOfOtherBranch && isAvoidable ? 1 : 0;
        if (isAboveHead || isOfOtherBranch || expected.some((each) => isEqual(result, each))) {
          return [];
        }
        const tookMs = Math.round(endMs - startMs);
        const heads = held.map(({ number, hash }) => `${number} ${hash.slice(0, HASH_START)}`);
        const named = `${question.method} ${JSON.stringify(question.params)}`;
        return [
          {
            question: named,
            cacheStatus,
            text,
            expected,
            tookMs,
            heads,
            isAvoidable,
            isError: result === undefined,
            isOfInvented: held.length === 0,
          },
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
