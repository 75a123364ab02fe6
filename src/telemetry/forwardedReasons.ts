import type { Telemetry } from "./telemetry.ts";

/** Why nodes answer calls that forebay answers on other chains. */
export type ForwardedReason = "rulesUnknown" | "developmentNode" | "noSource";

export const FORWARDED_TEXTS: Readonly<Record<ForwardedReason, string>> = {
  rulesUnknown: "the rules of the chain are not known: set chains[].forks, or upgrade forebay",
  developmentNode: "state of a development node is not followed, because it can change inside a block",
  noSource: "no node has block access lists or traces (debug_traceBlockByHash), and no feed has all transactions",
};

/** Documents name the same figures (docs/usage.md). */
export const FORWARDED_COST = "nodes answer most calls, and bill 30 to 60 times as many units";

/** `anvil_setBalance` and its like change state inside a block, and no write set shows that. */
const DEVELOPMENT_NODE = /anvil|hardhat|ganache/i;

/** Whether a result of web3_clientVersion is that of a development node. */
export const isDevelopmentNode = (version: unknown): boolean => DEVELOPMENT_NODE.test(String(version));

export interface ForwardedCalls {
  readonly reason: ForwardedReason;
  readonly text: string;
}

/** The reasons for which nodes answer the calls of one chain. Each change is logged. */
export class ForwardedReasons {
  readonly #chain: string;
  readonly #log: Telemetry["log"];
  readonly #reasons = new Set<ForwardedReason>();

  constructor(chain: string, { log }: Pick<Telemetry, "log">) {
    this.#chain = chain;
    this.#log = log;
  }

  get list(): readonly ForwardedCalls[] {
    return [...this.#reasons].map((reason) => ({ reason, text: FORWARDED_TEXTS[reason] }));
  }

  has(reason: ForwardedReason): boolean {
    return this.#reasons.has(reason);
  }

  set(reason: ForwardedReason, isSo: boolean): void {
    if (isSo === this.#reasons.has(reason)) {
      return;
    }
    const fields = { chain: this.#chain, reason, why: FORWARDED_TEXTS[reason] };
    if (isSo) {
      this.#reasons.add(reason);
      this.#log.warn(fields, FORWARDED_COST);
    } else {
      this.#reasons.delete(reason);
      this.#log.info(fields, "calls are answered locally again");
    }
  }
}
