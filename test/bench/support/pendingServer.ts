import { createService } from "../../support/servers/service.ts";

/** Starts forebay in front of a devnet, in a separate process. */
const [url = "", feed = ""] = process.argv.slice(2);
const service = await createService({
  nodes: [{ url }],
  forks: "isthmus",
  quirks: { anvilDepositNonce: true },
  pending: { feeds: [feed] },
});
process.send?.(Number(new URL(service.url).port));
