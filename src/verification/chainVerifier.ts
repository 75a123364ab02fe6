import { type Check, UnverifiedError } from "../core/node.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { COMPUTED_CHECKS, Evidence } from "./evidence.ts";
import { createVerifier, type Verifier, type VerifyLevel } from "./verifier.ts";
import type { VerifyThreads } from "./verifyThreads.ts";

export interface ChainVerifierOptions {
  readonly chain: string;
  readonly level: VerifyLevel;
  /** Names of the chain's nodes. */
  readonly nodes: readonly string[];
  /** Checks that are known to fail on this chain. */
  readonly off: readonly Check[];
  readonly pool: Pick<VerifyThreads, "check">;
  /** Called if an earlier response of a node is now known to be wrong. */
  onWrongAnswer(error: UnverifiedError): void;
}

/** Creates the verifier of one chain, with its metrics and its log. */
export const createChainVerifier = (options: ChainVerifierOptions, { log, metrics }: Telemetry): Verifier => {
  const { chain, level, nodes, off, pool } = options;
  for (const check of COMPUTED_CHECKS) {
    metrics.verifyOff.set({ chain, check }, off.includes(check) ? 1 : 0);
  }
  const evidence = new Evidence({
    nodes,
    off,
    onOff: (check) => {
      metrics.verifyOff.set({ chain, check }, 1);
      log.warn({ chain, check }, "a check is off: it failed on all nodes from the start");
    },
    onWrongAnswer: (node, check) => options.onWrongAnswer(new UnverifiedError(node, check, true)),
  });
  const onUncomputable = (check: Check): void => metrics.verifySkipped.inc({ chain, check });
  return createVerifier({ level, evidence, pool, onUncomputable });
};
