import type { Check } from "../core/node.ts";
import type { Finding } from "./findings.ts";
import { ForkFields } from "./forkFields.ts";

/**
 * The consequence of one check. `verified`: the response is served. `wrong`: the node is suspended.
 * `unconfirmed`: another node must respond. `accepted`: the response is served unverified, because no node passes the check.
 */
type Verdict = "verified" | "wrong" | "unconfirmed" | "accepted";

/** Checks that compute a hash or a root. They are switched off on a chain whose encoding forebay does not know. */
export const COMPUTED_CHECKS: ReadonlySet<Check> = new Set(["header", "transactions", "receipts", "depositReceipts"]);

/** The results of one check on all nodes of the chain. */
interface CheckRecord {
  /** A node passed this check: forebay knows the chain's encoding. Never reset. */
  isVerified: boolean;
  isOff: boolean;
  readonly failedOn: Set<string>;
  readonly uncomputableOn: Set<string>;
}

export interface EvidenceOptions {
  readonly nodes: readonly string[];
  /** The operator has switched these checks off. */
  readonly off: readonly Check[];
  /** Called once if a check is switched off, because every node failed it. */
  onOff(check: Check): void;
  /** Called for each node that failed a check before another node passed it for the first time. */
  onWrongAnswer(node: string, check: Check): void;
}

/**
 * Results of the computed checks of one chain. A check is off if every node failed it and no node ever passed it.
 * One node can therefore turn a check off only if it is the only node of the chain.
 */
export class Evidence {
  readonly #records = new Map<Check, CheckRecord>();
  readonly #forkFields = new ForkFields();
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

  evaluate({ check, outcome, header }: Finding, node: string): Verdict {
    if (!COMPUTED_CHECKS.has(check)) {
      return outcome === "passed" ? "verified" : "wrong";
    }
    const record = this.#record(check);
    if (outcome === "passed") {
      if (!record.isVerified && !record.isOff) {
        this.#confirm(record, check);
      }
      if (header !== undefined) {
        this.#forkFields.add(header);
      }
      return "verified";
    }
    if (record.isOff) {
      return "accepted";
    }
    if (header !== undefined && this.#forkFields.isLackedBy(header)) {
      return "wrong";
    }
    return outcome === "uncomputable"
      ? this.#evaluateUncomputable(record, node)
      : this.#evaluateFailed(record, check, node);
  }

  #record(check: Check): CheckRecord {
    const record = this.#records.get(check);
    if (record !== undefined) {
      return record;
    }
    const created = { isVerified: false, isOff: false, failedOn: new Set<string>(), uncomputableOn: new Set<string>() };
    this.#records.set(check, created);
    return created;
  }

  #confirm(record: CheckRecord, check: Check): void {
    record.isVerified = true;
    for (const node of record.failedOn) {
      this.#options.onWrongAnswer(node, check);
    }
    record.failedOn.clear();
  }

  #evaluateUncomputable({ uncomputableOn }: CheckRecord, node: string): Verdict {
    uncomputableOn.add(node);
    return uncomputableOn.size >= this.#options.nodes.length ? "accepted" : "unconfirmed";
  }

  #evaluateFailed(record: CheckRecord, check: Check, node: string): Verdict {
    if (record.isVerified) {
      return "wrong";
    }
    record.failedOn.add(node);
    if (record.failedOn.size < this.#options.nodes.length) {
      return "unconfirmed";
    }
    record.isOff = true;
    this.#options.onOff(check);
    return "accepted";
  }
}
