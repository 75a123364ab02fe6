import { originOf } from "../config/originOf.ts";
import type { ChainConfig, Config } from "../config/schema.ts";
import { requiredOrigins } from "../heads/decideHead.ts";
import { checkFacilitator } from "./checkFacilitator.ts";
import { checkFeed } from "./checkFeed.ts";
import { checkForwarded } from "./checkForwarded.ts";
import { type CheckedNode, checkNode } from "./checkNode.ts";
import { checkRedis } from "./checkRedis.ts";
import type { CheckResult } from "./checkResult.ts";

/** The nodes of one chain must have the same chain id. */
const compareIds = (chain: ChainConfig, nodes: readonly CheckedNode[]): readonly CheckResult[] => {
  const first = nodes.find(({ chainId }) => chainId !== undefined);
  if (first === undefined || chain.chainId !== undefined) {
    return [];
  }
  const others = nodes.filter(({ chainId }) => chainId !== undefined && chainId !== first.chainId);
  const faults = others.map(
    ({ name, chainId }): CheckResult => ({
      subject: `${chain.name}/${name}`,
      level: "fault",
      text: `its chain id is ${chainId}, that of ${first.name} is ${first.chainId}`,
    }),
  );
  const warning: CheckResult = {
    subject: chain.name,
    level: "warn",
    text: `no chainId is configured, the first node that responds decides: set chainId: ${first.chainId}`,
  };
  return [...faults, warning];
};

/** Names the origins of a chain's nodes, and how many of them must have a block before it is served. */
const describeOrigins = (chain: ChainConfig): CheckResult => {
  const origins = [...new Set(chain.nodes.map(originOf))];
  const required = requiredOrigins(chain.heads.agree, origins.length);
  const subject = `${chain.name} heads`;
  return origins.length === 1
    ? {
        subject,
        level: "ok",
        text: `one origin, its word alone decides: ${origins[0]}`,
      }
    : { subject, level: "ok", text: `${required} of ${origins.length} origins must agree: ${origins.join(", ")}` };
};

const checkChain = async (chain: ChainConfig): Promise<readonly CheckResult[]> => {
  const { feeds, maxMessageBytes } = chain.pending;
  const [nodes, feedResults] = await Promise.all([
    Promise.all(chain.nodes.map((node, index) => checkNode(chain, node, index))),
    Promise.all(feeds.map((url, index) => checkFeed(`${chain.name}/feed${index + 1}`, url, maxMessageBytes))),
  ]);
  const own = [
    ...nodes.flatMap(({ results }) => results),
    ...compareIds(chain, nodes),
    describeOrigins(chain),
    ...feedResults,
  ];
  return [...own, ...(await checkForwarded(chain, nodes))];
};

/** Checks every node (HTTP, WebSocket), feed, Redis and the facilitator of a configuration. Never rejects. */
export const checkConfig = async ({ chains, cache, access: { payment } }: Config): Promise<readonly CheckResult[]> => {
  const results = await Promise.all([
    ...chains.map(checkChain),
    ...(cache.redis === undefined ? [] : [checkRedis(cache.redis).then((result) => [result])]),
    ...(payment?.redis === undefined
      ? []
      : [checkRedis(payment.redis).then((result) => [{ ...result, subject: "redis of payments" }])]),
    ...(payment === undefined ? [] : [checkFacilitator(payment).then((result) => [result])]),
  ]);
  return results.flat();
};
