import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { createWalletClient, type Hex, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { anvil as anvilChain } from "viem/chains";
import { listen } from "../servers/ports.ts";
import { NETWORK } from "./token.ts";

/** The second account of a development node. It pays the gas. */
const KEY: Hex = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";

type Operation = "verify" | "settle" | "supported";

/** The fault of requests of one operation. `lost`: it settles, and the connection ends without an answer. */
export type FacilitatorFault = "hang" | "error" | "lost";

/** A facilitator that verifies signatures and settles on a development node with the published packages. */
export interface StandInFacilitator {
  readonly url: string;
  readonly faults: { [K in Operation]?: FacilitatorFault | undefined };
  readonly counts: Readonly<Record<Operation, number>>;
  /** The headers of the newest request. */
  readonly headers: () => IncomingMessage["headers"];
  /** The body of the newest request. */
  readonly body: () => unknown;
  /** Called before each settlement. */
  beforeSettle: (() => Promise<void>) | undefined;
  close(): Promise<void>;
}

const createScheme = (url: string): ExactEvmScheme => {
  const account = privateKeyToAccount(KEY);
  const transport = http(url);
  const client = createWalletClient({ account, chain: anvilChain, transport, pollingInterval: 20 }).extend(
    publicActions,
  );
  const signer = toFacilitatorEvmSigner({
    address: account.address,
    getCode: (request) => client.getCode(request),
    readContract: (request) => client.readContract({ ...request, args: request.args ?? [] }),
    verifyTypedData: (request) => client.verifyTypedData(request as Parameters<typeof client.verifyTypedData>[0]),
    writeContract: (request) => client.writeContract(request as Parameters<typeof client.writeContract>[0]),
    sendTransaction: (request) => client.sendTransaction(request),
    waitForTransactionReceipt: (request) => client.waitForTransactionReceipt(request),
  });
  return new ExactEvmScheme(signer);
};

/** Starts a facilitator in this process. */
export const startFacilitator = async (nodeUrl: string): Promise<StandInFacilitator> => {
  const facilitator = new x402Facilitator().register(NETWORK, createScheme(nodeUrl));
  const counts = { verify: 0, settle: 0, supported: 0 };
  const faults: StandInFacilitator["faults"] = {};
  let newest: IncomingMessage["headers"] = {};
  let newestBody = "";
  /** One at a time, because each transaction needs its own nonce. */
  let settled: Promise<unknown> = Promise.resolve();

  const run = async (operation: Operation, body: string): Promise<unknown> => {
    if (operation === "supported") {
      return facilitator.getSupported();
    }
    const { paymentPayload, paymentRequirements } = JSON.parse(body);
    if (operation === "verify") {
      return facilitator.verify(paymentPayload, paymentRequirements);
    }
    await standIn.beforeSettle?.();
    const settling = settled.then(() => facilitator.settle(paymentPayload, paymentRequirements));
    settled = settling.catch(() => undefined);
    return settling;
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const operation = (request.url ?? "").split("/").at(-1) as Operation;
    const body = await text(request);
    counts[operation]++;
    newest = request.headers;
    newestBody = body;
    const fault = faults[operation];
    if (fault === "hang") {
      return;
    }
    if (fault === "error") {
      response.writeHead(500).end("down");
      return;
    }
    const result = await run(operation, body);
    if (fault === "lost") {
      request.socket.destroy();
      return;
    }
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(result));
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  const port = await listen(server);
  const standIn: StandInFacilitator = {
    url: `http://127.0.0.1:${port}/facilitator`,
    faults,
    counts,
    headers: () => newest,
    body: () => JSON.parse(newestBody),
    beforeSettle: undefined,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return standIn;
};
