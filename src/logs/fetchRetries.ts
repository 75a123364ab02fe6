import { type Node, NodeError } from "../core/node.ts";
import { prunedEverywhere, RETRY_LIMITS, RETRY_RULES, retryCause } from "../core/retryPolicy.ts";

/** Counts the retries of one fetch range. */
export class FetchRetries {
  #count: number;

  constructor(count = 0) {
    this.#count = count;
  }

  get hasNext(): boolean {
    return this.#count < RETRY_LIMITS.logs.delaysMs.length;
  }

  /** Counts one retry. Returns the delay before it, or undefined after the last one. */
  next(): number | undefined {
    return this.hasNext ? RETRY_LIMITS.logs.delaysMs[this.#count++] : undefined;
  }

  /** Returns the count for blocks of the range that are fetched again. */
  fork(): FetchRetries {
    return new FetchRetries(this.#count);
  }

  /** Adds the retries of a fork. Forks wait at the same time, so that the highest count is used. */
  join(fork: FetchRetries): void {
    this.#count = Math.max(this.#count, fork.#count);
  }
}

/** The nodes that failed for one fetch range. In each round, every node is tried once (RETRY_RULES, `logs`). */
export class FailedNodes {
  readonly #errors = new Map<Node, unknown>();
  readonly #retries: FetchRetries;

  constructor(retries: FetchRetries) {
    this.#retries = retries;
  }

  has(node: Node): boolean {
    return this.#errors.has(node);
  }

  record(node: Node, error: unknown): void {
    this.#errors.set(node, error);
  }

  /**
   * Starts the next round, with the nodes whose errors are transient. If no node was tried, `isExpected` decides.
   * Returns the delay before the round, or undefined if there is no node to try, or after the last round.
   */
  startRound(isExpected: () => boolean): number | undefined {
    if (this.#errors.size === 0) {
      return isExpected() ? this.#retries.next() : undefined;
    }
    const transient = [...this.#errors].filter(([, error]) => isTransient(error));
    const delayMs = transient.length > 0 ? this.#retries.next() : undefined;
    if (delayMs !== undefined) {
      for (const [node] of transient) {
        this.#errors.delete(node);
      }
    }
    return delayMs;
  }

  /** The error for the caller: a node's error about the request rather than that another node is unreachable. */
  get mainError(): unknown {
    const errors = [...this.#errors.values()];
    const main = errors.find((error) => !isTransient(error)) ?? errors.at(-1);
    return isPruned(main) && errors.every(isPruned) ? prunedEverywhere(main) : main;
  }
}

const ruleOf = (error: unknown) => (error instanceof NodeError ? RETRY_RULES[retryCause(error)] : undefined);

const isPruned = (error: unknown): error is NodeError =>
  error instanceof NodeError && retryCause(error) === "prunedData";

/** Whether the cause may be gone in another round over all nodes. */
const isTransient = (error: unknown): boolean => ruleOf(error)?.logs === "nextRound";
