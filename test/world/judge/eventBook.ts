import { isAncestor } from "../chain/sealedBlock.ts";
import type { TruthBlock } from "../chain/truthBlock.ts";
import type { TruthChain } from "../chain/truthChain.ts";

export type EventKind = "newHeads" | "logs" | "pendingLogs" | "blockFilter" | "logFilter";

export interface EventFault {
  readonly kind: "lost" | "repeated" | "orphaned";
  readonly text: string;
}

interface LogEvent {
  readonly blockHash: string;
  readonly transactionHash: string;
  readonly logIndex: string;
  readonly removed?: boolean;
}

/** Pending transactions that were dropped are noticed later than a reorganisation. */
const MAX_DROP_MS = 30_000;

const hasLogs = (kind: EventKind): boolean => kind !== "newHeads" && kind !== "blockFilter";

/** All events of one subscription or filter. Compared with the record when it has ended. */
export class EventBook {
  readonly kind: EventKind;
  events = 0;
  /** Blocks that were sent again after another block of their number. */
  returns = 0;
  readonly #chain: TruthChain;
  /** The subscription began between these times. */
  readonly #startMs: number;
  readonly #sinceMs: number;
  readonly #present = new Map<string, number>();
  readonly #faults: EventFault[] = [];
  /** The chain that the blocks of the events form, by number. */
  readonly #branch = new Map<number, string>();

  constructor(kind: EventKind, chain: TruthChain, startMs: number, sinceMs: number) {
    this.kind = kind;
    this.#chain = chain;
    this.#startMs = startMs;
    this.#sinceMs = sinceMs;
  }

  add(event: unknown, atMs: number): void {
    this.events++;
    if (!hasLogs(this.kind)) {
      const hash = typeof event === "string" ? event : String(Reflect.get(Object(event), "hash"));
      this.#insertBlock(hash, atMs);
      return;
    }
    const log = event as LogEvent;
    const key = this.kind === "pendingLogs" ? log.transactionHash : `${log.blockHash}:${Number(log.logIndex)}`;
    if (log.removed !== true) {
      this.#insert(key, atMs);
    } else if (!this.#present.delete(key) && this.#isNew(log)) {
      this.#faults.push({ kind: "repeated", text: `${this.kind}: removed, but not sent before: ${key}` });
    }
  }

  /** Returns the faults of all events. Events until `endMs` must have arrived. The last ones may be newer. */
  check(endMs: number): readonly EventFault[] {
    const { kind } = this;
    const settledMs = endMs - this.#chain.lagBound.since(endMs);
    const heads = this.#chain.headsBetween(settledMs, performance.now());
    const [newest] = heads;
    if (newest === undefined) {
      return this.#faults;
    }
    const lost: EventFault[] = [];
    for (let block: TruthBlock | undefined = newest; block !== undefined; block = block.parent) {
      const atMs = this.#chain.publishedMs(block);
      if (atMs <= this.#sinceMs) {
        break;
      }
      if (atMs < settledMs && heads.every((head) => isAncestor(block, head))) {
        lost.push(
          ...this.#keysOf(block)
            .filter((key) => !this.#present.has(key))
            .map((key): EventFault => ({ kind: "lost", text: `${kind}: block ${block.number}, ${key}` })),
        );
      }
    }
    return [...this.#faults, ...lost, ...this.#orphans(heads, endMs)];
  }

  /** A block may be sent again after a block of another branch: replicas leave a branch at different times. */
  #insertBlock(hash: string, atMs: number): void {
    const number = this.#chain.block(hash)?.number ?? -1;
    if (this.#branch.get(number) === hash) {
      this.#faults.push({ kind: "repeated", text: `${this.kind}: block ${number} ${hash}` });
    }
    if (this.#present.has(hash)) {
      this.returns++;
    }
    for (const above of this.#branch.keys()) {
      if (above >= number) {
        this.#branch.delete(above);
      }
    }
    this.#branch.set(number, hash);
    this.#present.set(hash, atMs);
  }

  #insert(key: string, atMs: number): void {
    if (this.#present.has(key)) {
      this.#faults.push({ kind: "repeated", text: `${this.kind}: ${key}` });
    }
    this.#present.set(key, atMs);
  }

  /** Whether the block of a log was published after the subscription began. */
  #isNew({ blockHash }: LogEvent): boolean {
    const block = this.#chain.block(blockHash);
    return block !== undefined && this.#chain.publishedMs(block) > this.#sinceMs;
  }

  #keysOf(block: TruthBlock): readonly string[] {
    if (!hasLogs(this.kind)) {
      return [block.hash];
    }
    return this.kind === "pendingLogs"
      ? block.hashes.filter((hash) => !this.#wasPendingBefore(hash))
      : block.logs.map((_, index) => `${block.hash}:${index}`);
  }

  /** Whether a transaction was in the feed before the subscription began. */
  #wasPendingBefore(transaction: string): boolean {
    return this.#chain.firstSeenMs(transaction) <= this.#sinceMs;
  }

  /** Returns the logs of blocks that are on no branch of the last heads, and that were not removed. */
  #orphans(heads: readonly TruthBlock[], endMs: number): EventFault[] {
    if (!hasLogs(this.kind)) {
      return [];
    }
    const isOrphan = (key: string, atMs: number): boolean => {
      if (this.kind === "pendingLogs") {
        const isOld = atMs < endMs - MAX_DROP_MS;
        return isOld && !this.#chain.holding(key).some((block) => heads.some((head) => isAncestor(block, head)));
      }
      const block = this.#chain.block(key.slice(0, 66));
      return block === undefined || !heads.some((head) => isAncestor(block, head));
    };
    return [...this.#present]
      .filter(([key, atMs]) => atMs >= this.#startMs && isOrphan(key, atMs))
      .map(([key]) => ({ kind: "orphaned", text: `${this.kind}: ${key}` }));
  }
}
