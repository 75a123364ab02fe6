import type { Service } from "../servers/service.ts";
import { metric, rpc } from "./rpc.ts";
import { until } from "./until.ts";

/** Waits until forebay knows the finalized head and its ring reaches down to it. Before that, not every cacheable response is cached. */
export const settled = async (service: Service): Promise<void> => {
  await until(
    async () => (await metric(service.opsUrl, "forebay_head{", 'tag="safe"')) > 0,
    "the finalized head is known",
  );
  const finalized = await metric(service.opsUrl, "forebay_head{", 'tag="finalized"');
  const block = `0x${(finalized + 1).toString(16)}`;
  await until(async () => {
    const { headers } = await rpc(service.url, "eth_getBlockTransactionCountByNumber", [block]);
    return headers.get("cache-status")?.startsWith("forebay; hit") === true;
  }, "the ring reaches down to it");
};
