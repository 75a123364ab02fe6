import { createHash } from "node:crypto";
import { availableParallelism } from "node:os";
import type { ChainConfig, Config } from "../config/schema.ts";
import { budgetBytesOf } from "./createMemoryBudget.ts";

/** Returns the number of serving processes. */
export const countProcesses = ({ server: { processes } }: Pick<Config, "server">): number =>
  processes === "auto" ? availableParallelism() : processes;

/** The main process serves no clients. It caches the state of final blocks, and what it reads itself. */
const MAIN_CACHE_SHARE = 1 / 8;

const part = (whole: number, processes: number): number => Math.max(1, Math.ceil(whole / processes));

/** The main process sends requests to nodes too. */
const shareChain = (config: ChainConfig, processes: number): ChainConfig => ({
  ...config,
  nodes: config.nodes.map((node) => ({
    ...node,
    logSpans: part(node.logSpans, processes),
    ...(node.requestsPerSecond !== undefined && { requestsPerSecond: node.requestsPerSecond / (processes + 1) }),
  })),
});

const sharePayment = (payment: Config["access"]["payment"], processes: number): Config["access"]["payment"] =>
  payment && {
    ...payment,
    facilitator: { ...payment.facilitator, maxConcurrent: part(payment.facilitator.maxConcurrent, processes) },
  };

const shareCache = (cache: Config["cache"], share: number): Config["cache"] => ({
  ...cache,
  memoryBytes: Math.floor(cache.memoryBytes * share),
});

/** The main process reads bodies of nodes and feeds too. */
const shareBudget = (config: Config, processes: number): number => part(budgetBytesOf(config), processes + 1);

/** Returns the limits of the main process. */
export const shareOfMain = (config: Config, processes: number): Config => ({
  ...config,
  chains: config.chains.map((chain) => shareChain(chain, processes)),
  cache: shareCache(config.cache, MAIN_CACHE_SHARE),
  server: { ...config.server, memoryBudgetBytes: shareBudget(config, processes) },
});

/**
 * Returns the limits of one serving process, so that those of all together are the configured ones.
 * The main process counts calls, connections and filters of clients for all processes.
 */
export const shareOfServing = (config: Config, processes: number): Config => {
  const { server } = config;
  return {
    ...config,
    chains: config.chains.map((chain) => shareChain(chain, processes)),
    cache: shareCache(config.cache, (1 - MAIN_CACHE_SHARE) / processes),
    access: { ...config.access, payment: sharePayment(config.access.payment, processes) },
    server: {
      ...server,
      memoryBudgetBytes: shareBudget(config, processes),
      logSpans: part(server.logSpans, processes),
    },
  };
};

/** Returns the key of a chain between processes. A chain with another configuration has another key. */
export const chainKey = (config: ChainConfig): string =>
  createHash("sha256").update(JSON.stringify(config)).digest("hex");
