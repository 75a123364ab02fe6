import { readNodeIdentity } from "../heads/chainIdentity.ts";
import type { IdentityResult } from "../nodes/identityGate.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import type { ChainInfo, NodeFacts } from "./chainProtocol.ts";

export interface CopiedIdentityOptions {
  readonly nodes: () => readonly UpstreamNode[];
  readonly info: () => Pick<ChainInfo, "chainId" | "genesis">;
  /** Aborts when the chain is closed. */
  readonly signal: AbortSignal;
  /** Period of the checks of a node that only this process has found to be of another chain. */
  readonly checkMs?: number;
}

const CHECK_MS = 5_000;
/** Period of the checks whether a node has to be verified. Only a node whose connection was lost has to be. */
const CONFIRM_MS = 1_000;
/** A process begins to serve after this time even if a node does not respond. */
const MAX_FIRST_CHECK_MS = 1_000;

/**
 * Decides in a serving process which nodes are of the chain. The main process checks all nodes.
 * This process checks a node whose connection it has lost, and may find a restarted node before the main process does.
 */
export class CopiedIdentity {
  readonly #options: CopiedIdentityOptions;
  /** Nodes of another chain that the main process has not found yet. */
  readonly #foreign = new Map<UpstreamNode, NodeJS.Timeout>();
  /** Nodes that this process has begun to use. */
  readonly #used = new Set<UpstreamNode>();
  readonly #confirming: NodeJS.Timeout;

  constructor(options: CopiedIdentityOptions) {
    this.#options = options;
    this.#confirming = setInterval(() => void this.confirm(), CONFIRM_MS);
    this.#confirming.unref();
    options.signal.addEventListener("abort", () => this.#stop(), { once: true });
  }

  /** Applies the facts of the main process. */
  apply(facts: readonly NodeFacts[]): void {
    for (const { name, identified, isCordoned, head } of facts) {
      const node = this.#nodes().find((each) => each.name === name);
      if (node === undefined) {
        continue;
      }
      node.setCordoned(isCordoned);
      if (!identified) {
        // The main process has found it too, and decides from now on.
        this.#trust(node);
      }
      node.identity.isIdentified = identified && !this.#foreign.has(node);
      if (node.identity.isIdentified && !this.#used.has(node)) {
        // It may have been restarted since the main process verified it.
        this.#used.add(node);
        node.identity.requireCheck();
        void this.confirm();
      }
      if (head !== undefined && node.health.headHash !== head.hash) {
        node.health.recordHead(head);
      }
    }
  }

  /** Verifies the nodes whose connection is new or was lost. Resolves when they have responded, or after a second. */
  async confirm(): Promise<void> {
    const checks = this.#nodes()
      .filter(({ identity }) => identity.isIdentified)
      // The node is not used until it responds.
      .map((node) => node.identity.confirm().catch(() => undefined));
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, MAX_FIRST_CHECK_MS);
    await Promise.race([Promise.all(checks), promise]);
    clearTimeout(timer);
  }

  /** Checks the chain of a node that may have been restarted. Never rejects. */
  async verify(node: UpstreamNode): Promise<IdentityResult> {
    const { info, signal } = this.#options;
    try {
      const { chainId, genesis } = await readNodeIdentity(node, signal);
      const isSame = chainId === info().chainId && genesis === info().genesis;
      this.#trust(node);
      if (!isSame) {
        this.#distrust(node);
      }
      node.identity.isIdentified = isSame;
      return { kind: isSame ? "same" : "other" };
    } catch {
      // No response: the next request checks again.
      return { kind: "unknown" };
    }
  }

  #stop(): void {
    clearInterval(this.#confirming);
    for (const node of this.#nodes()) {
      this.#trust(node);
    }
  }

  #nodes(): readonly UpstreamNode[] {
    return this.#options.nodes();
  }

  #trust(node: UpstreamNode): void {
    clearTimeout(this.#foreign.get(node));
    this.#foreign.delete(node);
  }

  #distrust(node: UpstreamNode): void {
    const { signal, checkMs = CHECK_MS } = this.#options;
    if (signal.aborted) {
      return;
    }
    const checkAgain = async (): Promise<void> => {
      const { kind } = await this.verify(node);
      if (kind === "unknown") {
        this.#distrust(node);
      }
    };
    const timer = setTimeout(() => void checkAgain(), checkMs);
    timer.unref();
    this.#foreign.set(node, timer);
  }
}
