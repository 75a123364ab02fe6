import { request } from "undici";
import type { ChainConfig, Config } from "../config/schema.ts";

type NodeConfig = ChainConfig["nodes"][number];

const TIMEOUT_MS = 5_000;

interface Checked {
  readonly chain: string;
  readonly node: string;
  readonly chainId?: number;
  readonly head?: number;
  readonly milliseconds?: number;
  /** Why the node cannot be used; never holds its URL. */
  readonly fault?: string;
}

const ask = async ({ url, headers }: NodeConfig, method: string): Promise<unknown> => {
  const target = new URL(url);
  const credentials =
    target.username === ""
      ? undefined
      : `${decodeURIComponent(target.username)}:${decodeURIComponent(target.password)}`;
  target.username = "";
  target.password = "";
  const { statusCode, body } = await request(target, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(credentials && { authorization: `Basic ${btoa(credentials)}` }),
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [] }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const answer: unknown = await body.json().catch(() => undefined);
  if (typeof answer === "object" && answer !== null && "result" in answer) return answer.result;
  throw new Error(`${method} was answered with HTTP ${statusCode} and no result`);
};

/** The error's own words without what may hold a URL. */
const reason = (error: unknown): string => {
  if (!(error instanceof Error)) return "no answer";
  if ("code" in error && typeof error.code === "string") return error.code;
  return error.name === "TimeoutError"
    ? `no answer within ${TIMEOUT_MS} ms`
    : error.message.replace(/https?:\S+/g, "its URL");
};

const checkNode = async (chain: ChainConfig, node: NodeConfig, name: string): Promise<Checked> => {
  const startMs = performance.now();
  try {
    const chainId = Number(await ask(node, "eth_chainId"));
    const milliseconds = Math.round(performance.now() - startMs);
    const head = Number(await ask(node, "eth_blockNumber"));
    const wrong = chain.chainId !== undefined && chain.chainId !== chainId;
    return {
      chain: chain.name,
      node: name,
      chainId,
      head,
      milliseconds,
      ...(wrong && { fault: `its chain id is ${chainId}, the configuration says ${chain.chainId}` }),
    };
  } catch (error) {
    return { chain: chain.name, node: name, fault: reason(error) };
  }
};

/** Asks every node of the configuration for its chain and head. Nodes of one chain must agree on the chain id. */
export const checkNodes = async (config: Config): Promise<readonly Checked[]> => {
  const results = await Promise.all(
    config.chains.map(async (chain) => {
      const checked = await Promise.all(
        chain.nodes.map((node, index) => checkNode(chain, node, node.name ?? `node${index + 1}`)),
      );
      const first = checked.find(({ chainId }) => chainId !== undefined);
      return checked.map((result) =>
        result.fault === undefined && first !== undefined && result.chainId !== first.chainId
          ? { ...result, fault: `its chain id is ${result.chainId}, that of ${first.node} is ${first.chainId}` }
          : result,
      );
    }),
  );
  return results.flat();
};

export const formatChecked = ({ chain, node, chainId, head, milliseconds, fault }: Checked): string =>
  fault === undefined
    ? `ok    ${chain}/${node}: chain ${chainId}, head ${head}, ${milliseconds} ms`
    : `fault ${chain}/${node}: ${fault}`;
