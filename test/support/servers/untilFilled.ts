import { until } from "../clients/until.ts";
import type { Service } from "./service.ts";

/** Waits until the block ring of a short chain has all blocks. */
export const untilFilled = ({ chains }: Pick<Service, "chains">): Promise<void> =>
  until(async () => {
    const heads = chains[0]?.upstreams.heads;
    heads?.markActive();
    const latest = heads?.current()?.latest.number ?? 0n;
    return ((await heads?.reach({ from: 0n, to: latest })) ?? heads?.current())?.oldest === 0n;
  }, "the block ring is filled");
