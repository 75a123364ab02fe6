import type { Lifespan } from "../../support/servers/redis.ts";
import { ancestorAt, isAncestor } from "../chain/sealedBlock.ts";
import type { TruthBlock } from "../chain/truthBlock.ts";
import type { TruthChain } from "../chain/truthChain.ts";
import { startWorldNode, type WorldNode } from "../nodes/worldNode.ts";

interface Stay {
  readonly fromMs: number;
  toMs: number;
  readonly head: TruthBlock;
}

/** A node with a branch of its own. It forgets the blocks that it leaves. */
export class BranchNode {
  readonly #chain: TruthChain;
  readonly #node: WorldNode;
  readonly #stays: Stay[] = [];

  private constructor(chain: TruthChain, node: WorldNode) {
    this.#chain = chain;
    this.#node = node;
    this.#move(chain.head);
  }

  /** Starts a node with the blocks of the chain. It ends with the test. */
  static async start(t: Lifespan, chain: TruthChain): Promise<BranchNode> {
    return new BranchNode(chain, await startWorldNode(t, chain, { forgets: true }));
  }

  get url(): string {
    return this.#node.url;
  }

  get head(): TruthBlock {
    return this.#stays.at(-1)?.head ?? this.#chain.head;
  }

  /** Adds a block. */
  async mine(transactions: number): Promise<void> {
    this.#move(await this.#chain.extend(this.head, transactions));
  }

  /** Replaces the newest blocks by the same number of empty ones. */
  async reorg(depth: number): Promise<void> {
    let block = ancestorAt(this.head, this.head.number - depth) ?? this.head;
    for (let count = 0; count < depth; count++) {
      block = await this.#chain.extend(block, 0);
    }
    this.#move(block);
  }

  /** Leaves its own branch for that of `other`. */
  follow(other: BranchNode): void {
    this.#move(other.head);
  }

  /** Whether the node had one head for `minMs` between two times, and this head contains all these blocks. */
  had(blocks: readonly TruthBlock[], fromMs: number, toMs: number, minMs: number): boolean {
    return this.#stays.some(
      (stay) =>
        Math.min(toMs, stay.toMs) - Math.max(fromMs, stay.fromMs) >= minMs &&
        blocks.every((block) => isAncestor(block, stay.head)),
    );
  }

  #move(head: TruthBlock): void {
    const atMs = performance.now();
    const stay = this.#stays.at(-1);
    if (stay !== undefined) {
      stay.toMs = atMs;
    }
    this.#stays.push({ fromMs: atMs, toMs: Number.POSITIVE_INFINITY, head });
    this.#node.head = head;
  }
}
