import type { ChainConfig, Config } from "../config/schema.ts";
import { nodeName } from "../nodes/nodeName.ts";
import { requestResult } from "../nodes/requestResult.ts";

type NodeConfig = ChainConfig["nodes"][number];

const TIMEOUT_MS = 5_000;

/** Result of the check of one node. */
interface Checked {
  readonly chain: string;
  readonly node: string;
  readonly chainId?: number;
  readonly head?: number;
  readonly milliseconds?: number;
  /** Reason why the node cannot be used. Never contains its URL. */
  readonly fault?: string;
}

/** Formats an error without any URL. */
const formatReason = (error: unknown): string => {
  if (!(error instanceof Error)) {
    return "no response";
  }
  if ("code" in error && typeof error.code === "string") {
    return error.code;
  }
  return error.name === "TimeoutError"
    ? `no response within ${TIMEOUT_MS} ms`
    : error.message.replace(/https?:\S+/g, "its URL");
};

const checkNode = async (chain: ChainConfig, node: NodeConfig, name: string): Promise<Checked> => {
  const startMs = performance.now();
  try {
    const chainId = Number(await requestResult(node, "eth_chainId", TIMEOUT_MS));
    const milliseconds = Math.round(performance.now() - startMs);
    const head = Number(await requestResult(node, "eth_blockNumber", TIMEOUT_MS));
    const isWrongChain = chain.chainId !== undefined && chain.chainId !== chainId;
    return {
      chain: chain.name,
      node: name,
      chainId,
      head,
      milliseconds,
      ...(isWrongChain && { fault: `its chain id is ${chainId}, the configuration says ${chain.chainId}` }),
    };
  } catch (error) {
    return { chain: chain.name, node: name, fault: formatReason(error) };
  }
};

/**
 * Checks chain id and head of every configured node. The nodes of one chain must have the same chain id. Never rejects.
 */
export const checkNodes = async (config: Config): Promise<readonly Checked[]> => {
  const results = await Promise.all(
    config.chains.map(async (chain) => {
      const checked = await Promise.all(
        chain.nodes.map((node, index) => checkNode(chain, node, nodeName(node, index))),
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

/** Formats the result of one node as a line of text. */
export const formatChecked = ({ chain, node, chainId, head, milliseconds, fault }: Checked): string =>
  fault === undefined
    ? `ok    ${chain}/${node}: chain ${chainId}, head ${head}, ${milliseconds} ms`
    : `fault ${chain}/${node}: ${fault}`;
