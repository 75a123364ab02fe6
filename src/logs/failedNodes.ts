import { type Node, NodeError } from "../core/node.ts";
import { retryCause } from "../core/retryCause.ts";
import { RETRY_RULES } from "../core/retryPolicy.ts";
import type { FetchRetries } from "./fetchRetries.ts";

const ruleOf = (error: unknown) => (error instanceof NodeError ? RETRY_RULES[retryCause(error)] : undefined);

/** Whether the cause may be gone in another round over all nodes. */
const isTransient = (error: unknown): boolean => ruleOf(error)?.logs === "nextRound";

/** Whether the range is retried in a new view. */
const needsOtherView = (error: unknown): boolean => ruleOf(error)?.view === "waitForView";

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

  /** Whether a node that cannot be used yet should be waited for. It should not if something else can be tried at once. */
  get isWaitUseful(): boolean {
    const errors = [...this.#errors.values()];
    const isNextRound = this.#retries.hasNext && errors.some(isTransient);
    return !isNextRound && !errors.some(needsOtherView);
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
    return errors.find((error) => !isTransient(error)) ?? errors.at(-1);
  }
}
