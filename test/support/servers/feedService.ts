import { createDevnet, type Devnet } from "../../devnet/devnet.ts";
import { startTraffic } from "../../devnet/traffic.ts";
import { createService, type Service } from "./service.ts";

const TRANSFERS = 10;

/** Starts a devnet whose steps the test calls, with a feed without receipts, and some blocks with transfers of a token. */
export const createTokenDevnet = async () => {
  const devnet = await createDevnet({ manual: true, generation: "f" });
  const traffic = await startTraffic({ url: devnet.url, chainId: devnet.chainId, rate: 100, kinds: ["token"] });
  while (traffic.sent < TRANSFERS) {
    await devnet.step();
    await devnet.step();
    await devnet.sealNow();
  }
  await traffic.stop();
  await devnet.step();
  await devnet.step();
  await devnet.sealNow();
  return { devnet, token: traffic.token };
};

/** Starts a service that executes the feed of a devnet. */
export const createFeedService = async (devnet: Devnet): Promise<Service> => {
  if (devnet.feedUrl === undefined) {
    throw new Error("the devnet has no feed");
  }
  return createService({
    nodes: [{ url: devnet.url, wsUrl: devnet.anvilWsUrl }],
    pending: { mode: "feed", feeds: [devnet.feedUrl] },
    forks: "isthmus",
    quirks: { anvilDepositNonce: true },
  });
};
