import { Agent, request } from "undici";
import { callsOf, isBatch, type NodeCall, startFront } from "../../support/fakes/front.ts";
import type { ChainCall } from "../../support/servers/sealedChain.ts";
import type { TruthProxy } from "./proxy.ts";

/** Sends a call to a node, and returns its result. */
type Ask = (nodeUrl: string, call: ChainCall) => Promise<unknown>;

/** A fault of a proxy that else forwards each call to its first node. */
interface PlantedFault {
  /** Changes a call before it is sent. */
  readonly call?: (call: ChainCall, ask: (call: ChainCall) => Promise<unknown>) => Promise<ChainCall>;
  /** Changes a result. `count` is the number of results so far. */
  readonly result?: (call: ChainCall, result: unknown, count: number) => unknown;
  /** Chooses the node. */
  readonly node?: (nodeUrls: readonly string[], ask: Ask) => Promise<string>;
}

const STATE_METHODS = ["eth_getBalance", "eth_getTransactionCount", "eth_getStorageAt", "eth_call"];
/** One log in this number is lost. */
const LOST_LOG = 200;
const NULL_RECEIPT = 5;
const STEP_BACK = 10;
const LATEST: ChainCall = { method: "eth_blockNumber", params: [] };
const quantity = (value: number): string => `0x${value.toString(16)}`;

const createLogLoss = () => {
  let logs = 0;
  return (call: ChainCall, result: unknown): unknown =>
    call.method === "eth_getLogs" && Array.isArray(result) ? result.filter(() => ++logs % LOST_LOG !== 0) : result;
};

const PLANTED: Readonly<Record<string, () => PlantedFault>> = {
  /** No fault: the suite must find nothing. */
  nothing: () => ({}),
  /** The state of `latest` is that of the block before. */
  oldState: () => ({
    call: async (call, ask) => {
      if (!STATE_METHODS.includes(call.method) || call.params.at(-1) !== "latest") {
        return call;
      }
      const latest = Number(await ask(LATEST));
      return { ...call, params: [...call.params.slice(0, -1), quantity(latest - 1)] };
    },
  }),
  lostLog: () => ({ result: createLogLoss() }),
  nullReceipt: () => ({
    result: ({ method }, result, count) =>
      method === "eth_getTransactionReceipt" && count % NULL_RECEIPT === 0 ? null : result,
  }),
  stepBack: () => ({
    result: ({ method }, result, count) =>
      method === "eth_blockNumber" && count % STEP_BACK === 0 ? quantity(Number(result) - 1) : result,
  }),
  /** The node with the highest head serves all calls. */
  highestHead: () => ({
    node: async (nodeUrls, ask) => {
      const heads = await Promise.all(nodeUrls.map(async (url) => ({ url, head: Number(await ask(url, LATEST)) })));
      return heads.toSorted((one, other) => other.head - one.head)[0]?.url ?? "";
    },
  }),
};

export const PLANTED_PROXIES: readonly string[] = Object.keys(PLANTED);

/** A proxy in this process with a planted fault. Undefined if there is no such fault. */
export const plantedProxyOf = (name: string): TruthProxy | undefined => {
  const create = PLANTED[name];
  return (
    create && {
      name: `planted:${name}`,
      version: "of this tree",
      offers: new Set(),
      template: () => `a proxy in this process with the fault ${name}`,
      start: async (t, { nodeUrls }) => {
        const fault = create();
        const dispatcher = new Agent({ connections: 64 });
        let count = 0;
        const send = async (url: string, call: NodeCall): Promise<Record<string, unknown>> => {
          const headers = { "content-type": "application/json" };
          const body = JSON.stringify({ jsonrpc: "2.0", ...call });
          const { body: answer } = await request(url, { method: "POST", headers, body, dispatcher });
          return (await answer.json()) as Record<string, unknown>;
        };
        const ask: Ask = async (url, call) => (await send(url, { id: 1, ...call })).result;
        const answer = async ({ id, method, params }: NodeCall): Promise<object> => {
          const url = (await fault.node?.(nodeUrls, ask)) ?? nodeUrls[0] ?? "";
          const call = (await fault.call?.({ method, params }, (each) => ask(url, each))) ?? { method, params };
          const response = await send(url, { id, ...call });
          count++;
          return "result" in response && fault.result
            ? { ...response, result: fault.result(call, response.result, count) }
            : response;
        };
        const front = await startFront(async (body) => {
          const responses = await Promise.all(callsOf(body).map(answer));
          return JSON.stringify(isBatch(body) ? responses : responses[0]);
        });
        t.after(() => Promise.all([front.close(), dispatcher.destroy()]));
        return { urls: () => [front.url], restart: async () => undefined };
      },
    }
  );
};
