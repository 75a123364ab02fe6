import { createFakeNode } from "../../support/fakes/fakeNode.ts";
import { forwardTo, startFront } from "../../support/fakes/front.ts";

/**
 * A process with a node whose own work is small, so that a run measures forebay. It sends its URL to its parent, and ends with it.
 * The results of the methods that the run calls often exist before it starts.
 */
const LARGE_BYTES = 2_000_000;
/** Less than 64 KiB. */
const SMALL_BYTES = 60_000;
const RESULTS: Readonly<Record<string, string>> = {
  custom_large: `"0x${"ab".repeat(LARGE_BYTES / 2)}"`,
  custom_small: `"0x${"ab".repeat(SMALL_BYTES / 2)}"`,
  custom_read: "1",
  eth_getBalance: '"0x1"',
};

/** The fake node answers batches, which executions send. */
const node = await createFakeNode({
  handlers: {
    eth_getTransactionCount: () => "0x0",
    eth_getCode: () => "0x",
    eth_getStorageAt: () => `0x${"0".repeat(64)}`,
  },
});
const front = await startFront(async (body) => {
  const parsed: unknown = JSON.parse(body);
  const { id = null, method = "" }: { id?: unknown; method?: string } = Object(parsed);
  const result = RESULTS[method];
  if (result !== undefined) {
    return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`;
  }
  return forwardTo(node.url, body);
});
process.on("disconnect", () => process.exit());
process.send?.({ url: front.url });
