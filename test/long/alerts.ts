import { fireAlerts } from "../grafana/fireAlerts.ts";
import { watchAlerts } from "../grafana/watchAlerts.ts";

const DEFAULT_SECONDS = 300;
/** The longest `for` is 15 minutes, and the windows of two alerts are an hour. */
const MAX_SECONDS = 900;
/** Prometheus' own default is 60 s. One process has the services of most faults, so that each second would be a load of its own. */
const SCRAPE_SECONDS = 5;
/** All faults at once, up to the alert whose "yesterday" is shortened most. */
const LIMIT_MS = 3_000_000;

/**
 * Runs processes of each kind without a fault under the real rules. No alert may fire or be pending. With
 * `FAULTS=all`, each alert must fire on its real fault, with its true duration: 50 minutes. Else FAULTS is a regular expression
 * for the names of faults.
 */
export const long = async ({ seconds = DEFAULT_SECONDS }: { readonly seconds: number | undefined }) => {
  await using ends = new AsyncDisposableStack();
  const t = { after: (end: () => unknown) => ends.defer(async () => void (await end())) };
  const { FAULTS } = process.env;
  if (FAULTS !== undefined) {
    const only = new RegExp(FAULTS === "all" ? "." : FAULTS);
    const times = { divisor: 1, maxSeconds: MAX_SECONDS, maxOffsetSeconds: MAX_SECONDS, scrapeSeconds: SCRAPE_SECONDS };
    const missing = await fireAlerts(t, { ...times, limitMs: LIMIT_MS, only });
    return { passed: missing.length === 0, missing };
  }
  const raised = await watchAlerts(t, { divisor: 1, seconds });
  return { passed: raised.length === 0, raised, seconds };
};
