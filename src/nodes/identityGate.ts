import { type Clock, systemClock } from "../core/clock.ts";
import { NodeError } from "../core/node.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { BackOff } from "./backOff.ts";
import type { NodeLabels } from "./nodeConfig.ts";

/**
 * Whether a node serves the chain. `same`: it does. `other`: it serves another chain and is suspended. `unknown`: no response.
 * `reset`: same chain id, but another genesis that no node contradicts, as after the restart of a devnet.
 */
export type IdentityResult =
  | { readonly kind: "same" | "other" | "unknown" }
  | { readonly kind: "reset"; readonly genesis: Hash };

/** The reason why a node is not used yet. The text never contains the node's URL. */
export interface IdentityFault {
  readonly kind: "noAnswer" | "noGenesis" | "wrongChain";
  readonly text: string;
}

export interface IdentityGateOptions {
  readonly labels: NodeLabels;
  /** Host and port, for log lines. */
  readonly host: string;
  /** Reads the node's chain. Without it, `requireCheck` has no effect. */
  readonly verify: (() => Promise<IdentityResult>) | undefined;
  readonly clock?: Clock | undefined;
}

/** A node that is not identified is checked at growing intervals. */
const CHECKS = { failures: 1, openMs: 1_000, maxOpenMs: 10_000 };
const PERIOD_MS = 30_000;
/** A node that is suspended again within this time keeps its delay: its load balancer may alternate between chains. */
const FLAPPING_MS = 120_000;

/** Whether one node may be used: it serves the chain, and was not restarted since that was verified. With the back-off of the checks. */
export class IdentityGate {
  readonly #options: IdentityGateOptions;
  readonly #telemetry: Pick<Telemetry, "log" | "metrics">;
  readonly #clock: Clock;
  readonly #backOff: BackOff;
  #needsCheck = false;
  #verifying: Promise<IdentityResult> | undefined;
  #wasIdentified = false;
  /** What the log says about the node, if it is not identified. */
  #reported: string | undefined;
  #checkedMs = Number.NEGATIVE_INFINITY;
  #suspendedMs = Number.NEGATIVE_INFINITY;
  /** True if the node's chain id and genesis block were read and are the chain's. */
  isIdentified = false;
  /** The reason why the node is not identified, from the last check. */
  fault: IdentityFault | undefined;

  constructor(options: IdentityGateOptions, telemetry: Pick<Telemetry, "log" | "metrics">) {
    const { clock = systemClock } = options;
    this.#options = options;
    this.#telemetry = telemetry;
    this.#clock = clock;
    this.#backOff = new BackOff({ ...CHECKS, nowMs: () => clock.nowMs() });
    telemetry.metrics.upstreamWrongChain.set(options.labels, 0);
  }

  get isOpen(): boolean {
    return this.isIdentified && !this.#needsCheck;
  }

  /** The milliseconds until the next check of a node that is not identified. */
  get retryInMs(): number {
    return this.#backOff.retryInMs;
  }

  /** Whether the node's chain is to be read now. `periodMs`: for a node that is identified. */
  isDue(periodMs = PERIOD_MS): boolean {
    return this.isIdentified ? this.#clock.nowMs() - this.#checkedMs >= periodMs : this.#backOff.available;
  }

  /** The node's chain is being read. */
  begin(): void {
    this.#checkedMs = this.#clock.nowMs();
  }

  /** The node serves the chain. Returns whether that is known for the first time. */
  accept(): boolean {
    const isFirst = !this.#wasIdentified;
    this.#wasIdentified = true;
    this.isIdentified = true;
    this.fault = undefined;
    if (this.#clock.nowMs() - this.#suspendedMs > FLAPPING_MS) {
      this.#backOff.reset();
    }
    if (this.#reported !== undefined) {
      const { labels, host } = this.#options;
      this.#reported = undefined;
      this.#telemetry.metrics.upstreamWrongChain.set(labels, 0);
      this.#telemetry.log.info({ ...labels, host }, isFirst ? "node is reached" : "node serves this chain again");
    }
    return isFirst;
  }

  /** The node's chain could not be read. A node that is identified stays so. */
  miss(fault: IdentityFault): void {
    this.fault = fault;
    if (!this.isIdentified) {
      this.#backOff.failed();
    }
    if (!this.isIdentified && this.#reported === undefined) {
      const { labels, host } = this.#options;
      this.#reported = fault.kind;
      const fields = { ...labels, host, reason: fault.text };
      this.#telemetry.log.warn(fields, "node cannot be reached; trying again until it can");
    }
  }

  /** The node serves another chain. Returns whether that is new. `facts`: for the log line. */
  suspend(fault: IdentityFault, facts: Readonly<Record<string, string>>): boolean {
    const { labels } = this.#options;
    this.isIdentified = false;
    this.fault = fault;
    this.#backOff.failed();
    if (this.#reported === fault.text) {
      return false;
    }
    this.#reported = fault.text;
    this.#suspendedMs = this.#clock.nowMs();
    this.#telemetry.metrics.upstreamWrongChain.set(labels, 1);
    this.#telemetry.log.error(
      { ...labels, ...facts, reason: fault.text },
      "node is suspended: it serves another chain",
    );
    return true;
  }

  /** Closes the gate until the next verification: the node may have been restarted with another chain. */
  requireCheck(): void {
    this.#needsCheck = this.#options.verify !== undefined && this.isIdentified;
  }

  /** Verifies the node if a check is required, once for all concurrent calls. Rejects with NodeError if it must not be used. */
  async confirm(): Promise<void> {
    const { verify } = this.#options;
    if (this.#needsCheck && verify) {
      this.#verifying ??= verify().finally(() => {
        this.#verifying = undefined;
      });
      this.#needsCheck = (await this.#verifying).kind === "unknown";
    }
    if (!this.isOpen) {
      throw this.unknownChain();
    }
  }

  /** Creates the error of a call to a node that is not identified. */
  unknownChain(): NodeError {
    return new NodeError("unreachable", this.#options.labels.node, "the node is not known to be of this chain", {
      status: 503,
      retryAfterSeconds: 1,
    });
  }
}
