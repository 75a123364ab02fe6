import type { ChainConfig } from "../config/schema.ts";
import { areRulesKnown } from "../ethereum/rules.ts";
import { resolveForks } from "../runs/rulesWatch.ts";
import {
  FORWARDED_COST,
  FORWARDED_TEXTS,
  type ForwardedReason,
  isDevelopmentNode,
} from "../telemetry/forwardedReasons.ts";
import type { CheckedNode } from "./checkNode.ts";
import { CHECK_TIMEOUT_MS, type CheckResult } from "./checkResult.ts";
import { requestResult } from "./requestResult.ts";

const STATE_READS = "eth_getBalance, eth_getTransactionCount, eth_getCode, eth_getStorageAt";
const CALLS = "eth_call, eth_estimateGas";
const SIMULATIONS = "eth_simulateV1, eth_createAccessList";

type NodeConfig = ChainConfig["nodes"][number];

/** Whether forebay can execute the newest blocks of the chain. */
const hasRules = async (
  { forks: option, forksFile }: ChainConfig,
  chainId: number,
  node: NodeConfig,
): Promise<boolean> => {
  const callNode = (method: string, params: readonly unknown[]) =>
    requestResult(node, method, CHECK_TIMEOUT_MS, params);
  const resolved = await resolveForks(option, BigInt(chainId), callNode, forksFile).catch(() => undefined);
  return resolved !== undefined && areRulesKnown(resolved.forks, BigInt(Math.floor(Date.now() / 1_000)));
};

/** Returns why nodes answer calls of this chain, apart from what the operator switched off. */
const reasonsOf = async (
  chain: ChainConfig,
  chainId: number,
  node: NodeConfig,
  nodes: readonly CheckedNode[],
): Promise<readonly ForwardedReason[]> => {
  const { follow, cacheBytes } = chain.state;
  const version = await requestResult(node, "web3_clientVersion", CHECK_TIMEOUT_MS).catch(() => undefined);
  const isFollowed = follow !== false && cacheBytes > 0;
  const isDevelopment = isFollowed && follow === "auto" && isDevelopmentNode(version);
  const hasSource = chain.pending.feeds.length > 0 || nodes.some(({ abilities }) => abilities?.hasWriteSets === true);
  return [
    ...(chain.forks === "none" || (await hasRules(chain, chainId, node)) ? [] : (["rulesUnknown"] as const)),
    ...(isDevelopment ? (["developmentNode"] as const) : []),
    ...(isFollowed && !isDevelopment && !hasSource ? (["noSource"] as const) : []),
  ];
};

/** Returns the methods that nodes answer, although forebay could. */
const forwardedMethods = ({ forks, state }: ChainConfig, reasons: readonly ForwardedReason[]): readonly string[] => {
  const executes = forks !== "none" && !reasons.includes("rulesUnknown");
  const isOff = state.follow === false || state.cacheBytes === 0;
  const follows = !isOff && !reasons.includes("developmentNode") && !reasons.includes("noSource");
  return [
    ...(follows ? [] : [STATE_READS]),
    ...(follows && executes && state.follow === "auto" ? [] : [CALLS]),
    ...(executes ? [] : [SIMULATIONS]),
  ];
};

/** Reports what nodes will answer, and why. Empty if no node of the chain answers. Never rejects. */
export const checkForwarded = async (
  chain: ChainConfig,
  nodes: readonly CheckedNode[],
): Promise<readonly CheckResult[]> => {
  const at = nodes.findIndex(({ abilities }) => abilities !== undefined);
  const [node, checkedNode] = [chain.nodes[at], nodes[at]];
  if (node === undefined || checkedNode?.chainId === undefined) {
    return [];
  }
  const subject = chain.name;
  const reasons = await reasonsOf(chain, checkedNode.chainId, node, nodes);
  const methods = forwardedMethods(chain, reasons);
  const text = methods.length === 0 ? "only what is not known here" : `always ${methods.join(", ")}`;
  return [
    { subject, level: "ok", text: `forwarded to nodes: ${text}` },
    ...reasons.map(
      (reason): CheckResult => ({ subject, level: "warn", text: `${FORWARDED_COST}: ${FORWARDED_TEXTS[reason]}` }),
    ),
  ];
};
