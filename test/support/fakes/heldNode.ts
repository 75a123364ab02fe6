import type { Devnet } from "../../devnet/devnet.ts";
import { type Front, startFront } from "./front.ts";

/** Creates a lagging node: its `latest` is that of the devnet `delayMs` ago. It forwards all other requests. */
export const createHeldNode = async (devnet: Devnet, delayMs: number): Promise<Front> => {
  let latest = BigInt(String(await devnet.rpc("eth_blockNumber")));
  const timers = new Set<NodeJS.Timeout>();
  devnet.events.on("sealed", ({ number }) => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      latest = number;
    }, delayMs);
    timers.add(timer);
  });
  const hold = (call: { method: string; params?: unknown[] }) => {
    const params = call.params?.map((param) => (param === "latest" ? `0x${latest.toString(16)}` : param));
    return { ...call, ...(params && { params }) };
  };
  const forward = async (body: string): Promise<string> => {
    const calls: unknown = JSON.parse(body);
    const held = Array.isArray(calls) ? calls.map(hold) : hold(calls as { method: string });
    const headers = { "content-type": "application/json" };
    const response = await fetch(devnet.url, { method: "POST", headers, body: JSON.stringify(held) });
    return response.text();
  };
  const front = await startFront(forward);
  return {
    url: front.url,
    close: () => {
      for (const timer of timers) {
        clearTimeout(timer);
      }
      return front.close();
    },
  };
};
