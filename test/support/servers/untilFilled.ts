import { rpc } from "../clients/rpc.ts";
import { until } from "../clients/until.ts";
import type { Service } from "./service.ts";

/** Waits until the block ring of a short chain has all blocks. An idle chain fills it slowly. */
export const untilFilled = ({ url, chains }: Pick<Service, "url" | "chains">): Promise<void> =>
  until(async () => {
    await rpc(url, "eth_blockNumber", []);
    return chains[0]?.upstreams.heads.current()?.oldest === 0n;
  }, "the block ring is filled");
