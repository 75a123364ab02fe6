import type { AgreedStateOptions } from "../cache/agreedState.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

/** Each read of a client can find the same difference again. */
const LOG_INTERVAL_MS = 60_000;
/** Of the parameters of a call, and of a value. */
const MAX_CHARACTERS = 1_000;

/** Creates the function that counts reads of state on which two origins do not agree, and logs one of them a minute. */
export const createDisagreementReport = (
  chain: string,
  { log, metrics }: Pick<Telemetry, "log" | "metrics">,
): AgreedStateOptions["onDisagreement"] => {
  let loggedMs = Number.NEGATIVE_INFINITY;
  return ({ call: { method, params }, statements }) => {
    metrics.stateDisagreements.inc({ chain });
    const nowMs = performance.now();
    if (nowMs - loggedMs >= LOG_INTERVAL_MS) {
      loggedMs = nowMs;
      const shown = statements.map(({ node, value }) => ({ node, value: String(value).slice(0, MAX_CHARACTERS) }));
      const text = JSON.stringify(params).slice(0, MAX_CHARACTERS);
      log.error({ chain, method, params: text, statements: shown }, "nodes disagree on a state value");
    }
  };
};
