import type { NodeError } from "../core/node.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { Breaker, type BreakerOptions } from "./breaker.ts";
import { factsOf, isFault, reasonOf } from "./errorKind.ts";

const DEFAULT_BREAKER = { failures: 5, openMs: 5_000 };

export interface NodeFailuresOptions {
  readonly chain: string;
  /** The node's name. */
  readonly name: string;
  /** Host and port, for log lines. */
  readonly host: string;
  readonly breaker?: Pick<BreakerOptions, "failures" | "openMs"> | undefined;
}

/** Decides whether a node that fails gets no requests: it does not respond, or its responses are not JSON-RPC. */
export class NodeFailures {
  /** Counts HTTP requests. All calls of one request count once. */
  readonly breaker: Breaker;
  readonly #labels: { readonly chain: string; readonly node: string };
  readonly #host: string;
  readonly #telemetry: Telemetry;
  #last: NodeError | undefined;

  constructor({ chain, name, host, breaker = DEFAULT_BREAKER }: NodeFailuresOptions, telemetry: Telemetry) {
    this.#labels = { chain, node: name };
    this.#host = host;
    this.#telemetry = telemetry;
    this.breaker = new Breaker({ ...breaker, onChange: (isOut) => this.#onChange(isOut) });
    telemetry.metrics.upstreamBreaker.set(this.#labels, 0);
  }

  /** The node failed too often, and is not to be tried yet. */
  get isOut(): boolean {
    return !this.breaker.available;
  }

  /** Why the node is out; undefined for a node in use. */
  get reason(): string | undefined {
    if (!this.isOut) {
      return undefined;
    }
    return this.#last === undefined ? "it failed too often" : `it failed too often: ${reasonOf(this.#last)}`;
  }

  /** Records the error of a call. An error that is no fault of the node has no effect. */
  recordError(error: NodeError): void {
    if (isFault(error)) {
      this.#last = error;
    }
  }

  #onChange(isOut: boolean): void {
    const { log, metrics } = this.#telemetry;
    metrics.upstreamBreaker.set(this.#labels, isOut ? 1 : 0);
    const fields = { ...this.#labels, host: this.#host };
    if (isOut) {
      log.warn({ ...fields, ...(this.#last && factsOf(this.#last)) }, "node is not used: it failed too often");
    } else {
      log.warn(fields, "node is used again");
    }
  }
}
