import { setTimeout as sleep } from "node:timers/promises";
import type { ReadTally } from "../../support/servers/comparedReads.ts";
import type { Service } from "../../support/servers/service.ts";
import type { StandInChain } from "../../support/standIn/standInChain.ts";

const CHECK_MS = 10;

/** Waits until a service serves the newest block of a chain, and until an answer was compared after that. */
export const comparedStep = async (
  chain: StandInChain,
  service: Service,
  tally: Pick<ReadTally, "comparisons">,
  signal: AbortSignal,
): Promise<void> => {
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo() && !signal.aborted) {
      await sleep(CHECK_MS);
    }
  };
  await until(() => service.chains[0]?.upstreams.heads.current()?.latest.hash === chain.latest.hash);
  const { comparisons } = tally;
  await until(() => tally.comparisons > comparisons);
};
