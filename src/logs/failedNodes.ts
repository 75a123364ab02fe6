import { type Node, NodeError, type NodeErrorKind } from "../core/node.ts";

/** Causes that may be gone in another round over all nodes. */
const TRANSIENT: ReadonlySet<NodeErrorKind> = new Set(["timeout", "unreachable", "rateLimited", "invalidAnswer"]);
const MAX_ROUNDS = 4;

const isTransient = (error: unknown): boolean => error instanceof NodeError && TRANSIENT.has(error.kind);

/** The nodes that failed for one fetch range. In each round, every node is tried once. */
export class FailedNodes {
  readonly #errors = new Map<Node, unknown>();
  #round = 1;

  has(node: Node): boolean {
    return this.#errors.has(node);
  }

  record(node: Node, error: unknown): void {
    this.#errors.set(node, error);
  }

  /**
   * Starts the next round, with the nodes whose errors are transient. If no node was tried, `isExpected` decides.
   * Returns the round's number, or undefined if there is no node to try, or after the last round.
   */
  startRound(isExpected: () => boolean): number | undefined {
    if (this.#round >= MAX_ROUNDS) {
      return undefined;
    }
    if (this.#errors.size === 0) {
      return isExpected() ? ++this.#round : undefined;
    }
    const transient = [...this.#errors].filter(([, error]) => isTransient(error));
    for (const [node] of transient) {
      this.#errors.delete(node);
    }
    return transient.length > 0 ? ++this.#round : undefined;
  }

  /** The error for the caller: a node's error about the request rather than that another node is unreachable. */
  get mainError(): unknown {
    const errors = [...this.#errors.values()];
    return errors.find((error) => !isTransient(error)) ?? errors.at(-1);
  }
}
