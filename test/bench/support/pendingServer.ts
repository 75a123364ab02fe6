import { createService } from "../../support/servers/service.ts";

/** Starts forebay in front of a devnet, in a separate process. */
const [url = "", feed = "", processes = "1"] = process.argv.slice(2);
const service = await createService(
  {
    nodes: [{ url }],
    forks: "isthmus",
    quirks: { anvilDepositNonce: true },
    pending: { feeds: [feed] },
  },
  { server: { processes: Number(processes) } },
);
process.send?.(Number(new URL(service.url).port));
