import { watchAlerts } from "../grafana/watchAlerts.ts";

const DEFAULT_SECONDS = 300;

/** Runs processes of each kind without a fault under the real rules. No alert may fire or be pending. */
export const long = async ({ seconds = DEFAULT_SECONDS }: { readonly seconds: number | undefined }) => {
  await using ends = new AsyncDisposableStack();
  const { raised, scrapes } = await watchAlerts(
    { after: (end) => ends.defer(async () => void (await end())) },
    { divisor: 1, seconds },
  );
  return { passed: raised.length === 0 && scrapes >= seconds / 2, raised, seconds, scrapes };
};
