import type { Check } from "../core/node.ts";
import type { Finding } from "./findings.ts";

/**
 * `right`: served. `lie`: the node is convicted. `doubtful`: another node must be asked. `accepted`: served unverified, because
 * every node of the chain answers so.
 */
export type Judgement = "right" | "lie" | "doubtful" | "accepted";

/** Depend on how a chain encodes, and switch off where its encoding is not the one that is known here. */
export const COMPUTED_CHECKS: ReadonlySet<Check> = new Set(["header", "transactions", "receipts", "depositReceipts"]);

interface Record {
  /** A node passed this check: the chain's encoding is the known one, for good. */
  isVerified: boolean;
  isOff: boolean;
  readonly failedOn: Set<string>;
  readonly uncomputableOn: Set<string>;
}

export interface EvidenceOptions {
  readonly nodes: readonly string[];
  /** The operator knows that these fail. */
  readonly off: readonly Check[];
  onOff(check: Check): void;
  /** Nodes that failed a check before another node passed it for the first time. */
  onWrongAnswer(node: string, check: Check): void;
}

/**
 * Results of the computed checks of one chain. A check is off if every node failed it and no node ever passed it.
 * One node can therefore turn a check off only if it is the only node of the chain.
 */
export class Evidence {
  readonly #records = new Map<Check, Record>();
  readonly #options: EvidenceOptions;

  constructor(options: EvidenceOptions) {
    this.#options = options;
    for (const check of options.off) {
      this.#record(check).isOff = true;
    }
  }

  isOff(check: Check): boolean {
    return this.#records.get(check)?.isOff ?? false;
  }

  judge({ check, outcome }: Finding, node: string): Judgement {
    if (!COMPUTED_CHECKS.has(check)) {
      return outcome === "passed" ? "right" : "lie";
    }
    const record = this.#record(check);
    if (outcome === "passed") {
      if (!record.isVerified && !record.isOff) {
        this.#prove(record, check);
      }
      return "right";
    }
    if (record.isOff) {
      return "accepted";
    }
    return outcome === "uncomputable" ? this.#judgeUncomputable(record, node) : this.#judgeFailed(record, check, node);
  }

  #record(check: Check): Record {
    const record = this.#records.get(check);
    if (record !== undefined) {
      return record;
    }
    const made = { isVerified: false, isOff: false, failedOn: new Set<string>(), uncomputableOn: new Set<string>() };
    this.#records.set(check, made);
    return made;
  }

  #prove(record: Record, check: Check): void {
    record.isVerified = true;
    for (const liar of record.failedOn) {
      this.#options.onWrongAnswer(liar, check);
    }
    record.failedOn.clear();
  }

  #judgeUncomputable({ uncomputableOn }: Record, node: string): Judgement {
    uncomputableOn.add(node);
    return uncomputableOn.size >= this.#options.nodes.length ? "accepted" : "doubtful";
  }

  #judgeFailed(record: Record, check: Check, node: string): Judgement {
    if (record.isVerified) {
      return "lie";
    }
    record.failedOn.add(node);
    if (record.failedOn.size < this.#options.nodes.length) {
      return "doubtful";
    }
    record.isOff = true;
    this.#options.onOff(check);
    return "accepted";
  }
}
