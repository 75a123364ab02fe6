import { startAnvil } from "../../devnet/anvil.ts";
import { createFakeNode } from "../fakes/fakeNode.ts";
import { createService } from "../servers/service.ts";
import { Payer } from "./payer.ts";
import { startFacilitator } from "./standInFacilitator.ts";
import { deployToken, NETWORK } from "./token.ts";

/** The recipient of payments. */
export const PAY_TO = "0x00000000000000000000000000000000000000aa";

/** A facilitator that answers does so in this time, on a busy machine too. */
const TIMES = { timeoutMs: 20_000, settleTimeoutMs: 20_000 };

/** Starts a service that clients pay for, its node, a facilitator and a token on a development node. */
export const startPaidService = async () => {
  const payer = new Payer();
  const anvil = await startAnvil([]);
  const [token, facilitator, node] = await Promise.all([
    deployToken(anvil, payer.address, 1_000_000_000n),
    startFacilitator(anvil.url),
    createFakeNode(),
  ]);
  const payment = (price: object = { default: "0.001", methods: { eth_getLogs: "0.01", net_version: "0" } }) => ({
    payTo: PAY_TO,
    network: NETWORK,
    asset: token.asset,
    price,
    facilitator: { url: facilitator.url, headers: { authorization: "Bearer f-secret" }, ...TIMES },
  });
  const service = await createService({ nodes: [{ url: node.url }] }, { access: { payment: payment() } });
  return {
    payer,
    token,
    facilitator,
    node,
    service,
    /** The option `access.payment` of the service, or one with other prices. */
    payment,
    /** Returns what the recipient has received while `run` ran. */
    received: async (run: () => Promise<void>): Promise<bigint> => {
      const start = await token.balanceOf(PAY_TO);
      await run();
      return (await token.balanceOf(PAY_TO)) - start;
    },
    close: async (): Promise<void> => {
      await service.close();
      await facilitator.close();
      await node.close();
      await anvil.close();
    },
  };
};
