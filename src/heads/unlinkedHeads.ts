import type { Clock } from "../core/clock.ts";
import type { SealedBlock } from "../nodes/sealedBlock.ts";
import type { UpstreamNode } from "../nodes/upstreamNode.ts";
import { findAgreedHead, type OfferedHead } from "./agreedHead.ts";
import type { CanonicalChain } from "./canonicalChain.ts";
import { type Agree, requiredOrigins } from "./decideHead.ts";
import type { HeadSelection } from "./headSelection.ts";

export interface FirstHeadsOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly agree: Agree;
  /** All nodes of the chain, the preferred ones first. */
  readonly nodes: readonly UpstreamNode[];
  readonly canonical: CanonicalChain;
  readonly selection: HeadSelection;
}

/** The first heads of all origins are awaited for this time, and then the blocks that some have below their heads. */
const FIRST_HEADS_MS = 2_000;

/** Serves the first head: the highest of the first heads of all nodes that enough origins have. */
export class FirstHeads {
  readonly #options: FirstHeadsOptions;
  readonly #onServed: (offered: readonly OfferedHead[], served: OfferedHead) => void;
  readonly #heads = new Map<UpstreamNode, SealedBlock>();
  #waiting: AbortController | undefined;

  /** `onServed` receives the heads that were offered, and the one that is served. */
  constructor(options: FirstHeadsOptions, onServed: (offered: readonly OfferedHead[], served: OfferedHead) => void) {
    this.#options = options;
    this.#onServed = onServed;
  }

  /** Collects the first head of each node. Serves one when all have reported, or after FIRST_HEADS_MS. */
  async offer(node: UpstreamNode, head: SealedBlock): Promise<void> {
    const { clock, signal, nodes } = this.#options;
    this.#heads.set(node, head);
    const isMissing = nodes.some((other) => !this.#heads.has(other) && other.fault === undefined);
    if (!isMissing) {
      await this.#serve();
    } else if (this.#waiting === undefined) {
      this.#waiting = new AbortController();
      void clock
        .sleep(FIRST_HEADS_MS, AbortSignal.any([signal, this.#waiting.signal]))
        .then(() => this.#serve())
        // The next head tries again.
        .catch(() => undefined);
    }
  }

  async #serve(): Promise<void> {
    const { canonical, selection, agree, clock, nodes, signal } = this.#options;
    const offered = nodes.flatMap((node) => {
      const head = this.#heads.get(node);
      return node.identified && head !== undefined ? [{ node, head }] : [];
    });
    this.#waiting?.abort();
    this.#waiting = undefined;
    if (canonical.ring !== undefined || offered.length === 0 || signal.aborted) {
      return;
    }
    const origins = new Set(offered.map(({ node }) => node.origin));
    const late = new AbortController();
    void clock.sleep(FIRST_HEADS_MS, AbortSignal.any([signal, late.signal])).then(() => late.abort());
    const agreed = await findAgreedHead(offered, requiredOrigins(agree, origins.size), late.signal);
    late.abort();
    const first = agreed ?? offered[0];
    if (first === undefined || canonical.ring !== undefined) {
      return;
    }
    if (agreed !== undefined && origins.size > 1) {
      selection.serve(first.node, { blocks: [first.head], joined: true, isAgreed: true }, undefined);
    } else {
      await selection.offerHead(first.node, first.head);
    }
    this.#onServed(offered, first);
  }
}
