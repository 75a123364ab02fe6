import type { Check } from "../core/node.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Finding, HeaderForm } from "./findings.ts";

/**
 * The consequence of one check. `verified`: the response is served. `wrong`: the node is suspended.
 * `unconfirmed`: another node must respond. `accepted`: the response is served unverified, because no node passes the check.
 */
type Verdict = "verified" | "wrong" | "unconfirmed" | "accepted";

/** Checks that compute a hash or a root. They are switched off on a chain whose encoding forebay does not know. */
const COMPUTED_CHECKS: ReadonlySet<Check> = new Set([
  ...(["header", "transactions", "receipts", "depositReceipts", "proof", "accessList"] as const),
]);

/** The results of one check on all nodes of the chain. */
interface CheckRecord {
  /** A node passed this check: forebay knows the chain's encoding. Never reset. */
  isVerified: boolean;
  isOff: boolean;
  readonly failedOn: Set<string>;
  readonly uncomputableOn: Set<string>;
}

/** A node, and whether it gets a method. */
export interface EvidenceNode {
  readonly name: string;
  readonly state: { readonly isCordoned: boolean };
  /** It can be used now. */
  readonly available: boolean;
  /** It is configured to get the method. */
  serves(method: string): boolean;
  /** It has not refused the method. */
  accepts(method: string): boolean;
}

/** The node that returned a response, and the call that it answered. */
export interface AnsweredCall {
  readonly node: { readonly name: string };
  readonly call: { readonly method: string };
}

export interface EvidenceOptions {
  /** Name of the chain, for metrics. */
  readonly chain: string;
  nodes(): readonly EvidenceNode[];
  /** The operator has switched these checks off. */
  readonly off: readonly Check[];
  /** Called for each node that failed a check before another node passed it for the first time. */
  onWrongAnswer(node: string, check: Check): void;
}

/**
 * Results of the computed checks of one chain. A check is off if every node that gets the method failed it and no node ever passed it.
 * One node can therefore turn a check off only if it is the only one that gets the method. What cannot be computed is served once
 * every node that can be asked now returned such a response.
 */
export class Evidence {
  readonly #records = new Map<Check, CheckRecord>();
  readonly #forkFields = new ForkFields();
  readonly #options: EvidenceOptions;
  readonly #telemetry: Pick<Telemetry, "log" | "metrics">;

  constructor(options: EvidenceOptions, telemetry: Pick<Telemetry, "log" | "metrics">) {
    this.#options = options;
    this.#telemetry = telemetry;
    for (const check of COMPUTED_CHECKS) {
      telemetry.metrics.verifyOff.set({ chain: options.chain, check }, 0);
    }
    for (const check of options.off) {
      this.#turnOff(this.#record(check), check);
    }
  }

  isOff(check: Check): boolean {
    return this.#records.get(check)?.isOff ?? false;
  }

  /** Whether a node passed the check, so forebay knows the chain's encoding. */
  hasPassed(check: Check): boolean {
    return this.#records.get(check)?.isVerified ?? false;
  }

  /** Decides about a finding, and counts it if its response is served unverified. */
  evaluate(finding: Finding, answered: AnsweredCall): Verdict {
    const verdict = this.#evaluate(finding, answered);
    if (verdict === "accepted") {
      this.#telemetry.metrics.verifySkipped.inc({ chain: this.#options.chain, check: finding.check });
    }
    return verdict;
  }

  #evaluate({ check, outcome, header }: Finding, answered: AnsweredCall): Verdict {
    // What is known of the list passed. The rest is no evidence for or against the encoding of the chain.
    if (outcome === "partial") {
      return "accepted";
    }
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
      ? this.#evaluateUncomputable(record, answered)
      : this.#evaluateFailed(record, check, answered);
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

  #evaluateUncomputable({ uncomputableOn }: CheckRecord, { node, call: { method } }: AnsweredCall): Verdict {
    uncomputableOn.add(node.name);
    const canStillPass = this.#options
      .nodes()
      .some(
        (other) =>
          other.available && other.accepts(method) && getsMethod(other, method) && !uncomputableOn.has(other.name),
      );
    return canStillPass ? "unconfirmed" : "accepted";
  }

  /** A node that is down counts: the one that responds may be wrong. */
  #evaluateFailed(record: CheckRecord, check: Check, { node, call: { method } }: AnsweredCall): Verdict {
    const { failedOn } = record;
    if (record.isVerified) {
      return "wrong";
    }
    failedOn.add(node.name);
    if (this.#options.nodes().some((other) => getsMethod(other, method) && !failedOn.has(other.name))) {
      return "unconfirmed";
    }
    this.#turnOff(record, check);
    this.#telemetry.log.warn(
      { chain: this.#options.chain, check },
      "a check is off: it failed on all nodes from the start",
    );
    return "accepted";
  }

  #turnOff(record: CheckRecord, check: Check): void {
    record.isOff = true;
    this.#telemetry.metrics.verifyOff.set({ chain: this.#options.chain, check }, 1);
  }
}

const getsMethod = (node: EvidenceNode, method: string): boolean => !node.state.isCordoned && node.serves(method);

/** The lowest verified header with each number of fork fields. Later headers of the chain have at least as many. */
class ForkFields {
  readonly #from = new Map<number, bigint>();

  add({ number, forkFields }: HeaderForm): void {
    const lowest = this.#from.get(forkFields);
    if (lowest === undefined || number < lowest) {
      this.#from.set(forkFields, number);
    }
  }

  /** Whether a header has fewer fork fields than a verified header before it. */
  isLackedBy({ number, forkFields }: HeaderForm): boolean {
    return [...this.#from].some(([fields, from]) => fields > forkFields && from <= number);
  }
}
