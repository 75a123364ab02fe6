import { type Address, formatQuantity } from "../../../src/ethereum/hex.ts";
import type { Lie } from "../../support/fakes/lyingNode.ts";
import type { Lifespan } from "../../support/servers/redis.ts";
import { createService, type Service } from "../../support/servers/service.ts";
import { startWorldNode, type WorldNode } from "../../world/nodes/worldNode.ts";
import { STAND_IN_ACCOUNTS } from "../../world/state/randomStateBlocks.ts";
import type { StandInChain } from "../../world/state/standInChain.ts";

/** The methods that read a write set. */
export const SOURCE_METHODS = ["debug_traceBlockByHash", "eth_getBlockAccessList"];
/** The accounts about whose balances the lying node lies. */
export const LIED: readonly Address[] = STAND_IN_ACCOUNTS.slice(0, 3);
/** Cheap, so that a few reads pay for following. */
const UNITS = Object.fromEntries(SOURCE_METHODS.map((method) => [method, 1]));
/** A little longer than the replies of a slow Redis, so that they arrive. */
const REDIS_TIMEOUT_MS = 250;

const raised = (balance: unknown): string => formatQuantity(BigInt(String(balance)) + 1n);

interface DiffSide {
  readonly [account: string]: { readonly balance?: string };
}

interface TraceItem {
  readonly result?: { readonly pre?: DiffSide; readonly post?: DiffSide };
}

const raisedSide = (side: DiffSide = {}): DiffSide =>
  Object.fromEntries(
    Object.entries(side).map(([account, fields]) => [
      account,
      fields.balance !== undefined && (LIED as readonly string[]).includes(account)
        ? { ...fields, balance: raised(fields.balance) }
        : fields,
    ]),
  );

/** Balances of some accounts are higher by 1, in reads and in traces alike: the node never contradicts itself. */
const LIES: readonly Lie[] = [
  {
    ...{ name: "balances", methods: ["eth_getBalance"] },
    result: (result, { params: [address] }) =>
      (LIED as readonly unknown[]).includes(address) ? raised(result) : result,
  },
  {
    ...{ name: "traces", methods: ["debug_traceBlockByHash"] },
    result: (result) =>
      (result as readonly TraceItem[]).map((item) =>
        item.result?.post === undefined
          ? item
          : { ...item, result: { pre: raisedSide(item.result.pre), post: raisedSide(item.result.post) } },
      ),
  },
];

export interface SharedReplica {
  readonly service: Service;
  readonly node: WorldNode;
}

export interface SharedReplicasOptions {
  readonly chain: StandInChain;
  readonly blockMs: number;
  readonly redisUrl: string;
  readonly source: "trace" | "accessList";
  /** A response that a node changes after it is made, on the way to each replica. */
  readonly onSource: Lie;
}

/** The configuration of a replica in front of one node. Replicas of one provider have different URLs of the same node. */
export const replicaConfig = (
  { blockMs, redisUrl, source }: Pick<SharedReplicasOptions, "blockMs" | "redisUrl" | "source">,
  url: string,
  provider: "honest" | "liar",
) => ({
  chains: [
    {
      ...{ name: "chain", nodes: [{ url, name: "own", provider }], blockTimeMs: blockMs },
      forks: source === "trace" ? "prague" : "amsterdam",
      state: { source, units: UNITS },
    } as const,
  ],
  cache: { redis: redisUrl, redisTimeoutMs: REDIS_TIMEOUT_MS },
});

/** Starts a node that has the source of write sets. */
export const startSourceNode = (
  t: Lifespan,
  { chain, source }: Pick<SharedReplicasOptions, "chain" | "source">,
  lies: readonly Lie[],
): Promise<WorldNode> => startWorldNode(t, chain, { traces: source === "trace" ? "geth" : undefined, lies });

/** Starts three replicas with one Redis. Each has a node of its own, and that of the last one lies. */
export const startSharedReplicas = async (t: Lifespan, options: SharedReplicasOptions) => {
  const start = async (isLiar: boolean): Promise<SharedReplica> => {
    const node = await startSourceNode(t, options, [...(isLiar ? LIES : []), options.onSource]);
    const { chains, cache } = replicaConfig(options, node.url, isLiar ? "liar" : "honest");
    const service = await createService(chains, { cache });
    t.after(() => service.close());
    return { service, node };
  };
  return { honest: [await start(false), await start(false)] as const, lying: await start(true) };
};
