import { type Node, UnverifiedError } from "../core/node.ts";
import { isHash } from "../ethereum/hex.ts";
import { RpcError } from "../jsonrpc/rpcError.ts";
import type { FetchRange } from "./fetchRange.ts";
import { FetchRetries } from "./fetchRetries.ts";
import type { FetchContext } from "./requestLogs.ts";
import type { ScannedLog } from "./scanLogs.ts";
import { checkAgainst, type LogVerification } from "./verifyLogs.ts";

/** The logs of a range, with the nodes that returned them. */
interface RangeLogs {
  readonly logs: readonly ScannedLog[];
  readonly nodes: ReadonlySet<string>;
}

export interface OriginLogsOptions {
  readonly nodes: readonly Node[];
  readonly verification: LogVerification;
  readonly fetchLogs: (range: FetchRange, context: FetchContext) => Promise<RangeLogs>;
}

/** Other origins that may be wrong before the comparison ends. */
const MAX_ROUNDS = 2;

const isSameLog = (one: ScannedLog | undefined, other: ScannedLog | undefined): boolean =>
  one?.block === other?.block && one?.index === other?.index && one?.hash === other?.hash;

/** Returns a log of the first block in which two ordered lists differ; undefined if both have the same logs. */
const findDifference = (one: readonly ScannedLog[], other: readonly ScannedLog[]): ScannedLog | undefined => {
  const length = Math.max(one.length, other.length);
  for (let at = 0; at < length; at++) {
    const left = one[at];
    const right = other[at];
    if (!isSameLog(left, right)) {
      return left === undefined || (right !== undefined && right.block < left.block) ? right : left;
    }
  }
  return undefined;
};

/** Compares the logs of ranges with those of another origin. The receipts of a block decide about a difference. */
export class OriginLogs {
  readonly #options: OriginLogsOptions;
  readonly #hasOthers: boolean;

  constructor(options: OriginLogsOptions) {
    this.#options = options;
    this.#hasOthers = new Set(options.nodes.map(({ origin }) => origin)).size > 1;
  }

  /**
   * Whether a node of another origin has the same logs. Rejects with UnverifiedError if the receipts of a block show that the
   * node is wrong.
   */
  async confirm(node: Node, range: FetchRange, logs: readonly ScannedLog[], context: FetchContext): Promise<boolean> {
    if (!this.#isCompared(range)) {
      return true;
    }
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const other = await this.#fetchOther(node, range, context);
      const difference = other && findDifference(logs, other.logs);
      if (other === undefined || difference === undefined) {
        return other !== undefined;
      }
      if (!(await this.#decide({ node, logs, other, difference }, range, context))) {
        return false;
      }
    }
    return false;
  }

  /** Blocks that are fetched again belong to a range, which is compared as a whole. */
  #isCompared({ comparedOrigin, isRecheck, avoided }: FetchRange): boolean {
    return this.#hasOthers && comparedOrigin === undefined && isRecheck === undefined && avoided === undefined;
  }

  /** Returns undefined if no other origin has the range now. */
  async #fetchOther({ origin }: Node, range: FetchRange, context: FetchContext): Promise<RangeLogs | undefined> {
    try {
      const own = { ...context, isPlanned: false, retries: new FetchRetries() };
      return await this.#options.fetchLogs({ ...range, comparedOrigin: origin }, own);
    } catch (error) {
      context.owner.signal.throwIfAborted();
      if (error instanceof RpcError) {
        return undefined;
      }
      throw error;
    }
  }

  /** Compares both with the receipts of the block. Returns false if no node has these. Rejects if the first node is wrong. */
  async #decide(
    compared: {
      readonly node: Node;
      readonly logs: readonly ScannedLog[];
      readonly other: RangeLogs;
      readonly difference: ScannedLog;
    },
    { filter }: FetchRange,
    context: FetchContext,
  ): Promise<boolean> {
    const { nodes, verification } = this.#options;
    const { verifier, receiptsOf } = verification;
    const { node, logs, other, difference } = compared;
    const number = BigInt(difference.block);
    const hash = context.view.heads.at(number)?.hash ?? difference.hash;
    const isReadable = verifier.verifiesReceipts() && isHash(hash);
    const receipts = isReadable ? await receiptsOf({ number, hash }, context) : undefined;
    if (receipts === undefined) {
      return false;
    }
    const check = (each: Node, list: readonly ScannedLog[]): Promise<void> => {
      const ofBlock = list.filter(({ block }) => block === difference.block);
      return checkAgainst(verifier, each, ofBlock, { filter, blooms: new Map(), receipts });
    };
    await check(node, logs);
    // Of several nodes, it is not known which one returned the block.
    const [name] = other.nodes;
    const wrong = other.nodes.size === 1 ? nodes.find((each) => each.name === name) : undefined;
    await (wrong && check(wrong, other.logs).catch(ignoreUnverified));
    return true;
  }
}

/** The check has recorded the node. */
const ignoreUnverified = (error: unknown): void => {
  if (!(error instanceof UnverifiedError)) {
    throw error;
  }
};
