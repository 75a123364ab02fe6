import type { Call } from "../jsonrpc/call.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

/** What a node returned for a read of the state. */
export interface StatedResult {
  readonly node: string;
  readonly value: unknown;
}

/** Each read of a client can find the same difference again. */
const LOG_INTERVAL_MS = 60_000;
/** Of the parameters of a call, and of a value. */
const MAX_LOGGED_CHARACTERS = 1_000;

/** The reads of state for which two nodes return different results, and no other decides. One of them is logged a minute. */
export class Disagreements {
  readonly #chain: string;
  readonly #telemetry: Pick<Telemetry, "log" | "metrics">;
  #loggedMs = Number.NEGATIVE_INFINITY;

  constructor(chain: string, telemetry: Pick<Telemetry, "log" | "metrics">) {
    this.#chain = chain;
    this.#telemetry = telemetry;
  }

  report({ method, params }: Call, statements: readonly StatedResult[]): void {
    const { log, metrics } = this.#telemetry;
    const chain = this.#chain;
    metrics.stateDisagreements.inc({ chain });
    const nowMs = performance.now();
    if (nowMs - this.#loggedMs >= LOG_INTERVAL_MS) {
      this.#loggedMs = nowMs;
      const shown = statements.map(({ node, value }) => ({
        node,
        value: String(value).slice(0, MAX_LOGGED_CHARACTERS),
      }));
      const text = JSON.stringify(params).slice(0, MAX_LOGGED_CHARACTERS);
      log.error({ chain, method, params: text, statements: shown }, "nodes disagree on a state value");
    }
  }
}
