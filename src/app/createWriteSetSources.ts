import type { ChainConfig } from "../config/schema.ts";
import type { BlockId } from "../core/heads.ts";
import type { Reach } from "../core/node.ts";
import { areRulesKnown } from "../ethereum/rules.ts";
import { createCall } from "../jsonrpc/call.ts";
import { rankNodes } from "../nodes/nodeSelection.ts";
import type { UnitsOf } from "../state/providerUnits.ts";
import { AccessListSource } from "../state/sources/accessListSource.ts";
import { TraceSource } from "../state/sources/traceSource.ts";
import { selectWriteSetSources } from "../state/sources/writeSetSources.ts";
import { WriteSetThread } from "../state/sources/writeSetThread.ts";
import type { WriteSetSource } from "../state/writeSet.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { PendingViews } from "./createPendingViews.ts";
import type { Upstreams } from "./upstreams.ts";
import { workerEntry } from "./workerEntry.ts";

export interface WriteSetSourcesOptions {
  readonly config: Pick<ChainConfig, "name" | "state">;
  readonly upstreams: Upstreams;
  readonly views: Pick<PendingViews, "forks" | "view">;
  readonly unitsOf: UnitsOf;
  readonly telemetry: Telemetry;
}

/** The sources of one chain, and the end of their thread. */
export interface ChainWriteSetSources {
  readonly sources: readonly WriteSetSource[];
  close(): Promise<void>;
}

/** Creates the sources of write sets that `state.source` allows, in the order in which they are asked. */
export const createWriteSetSources = (options: WriteSetSourcesOptions): ChainWriteSetSources => {
  const { config, upstreams, unitsOf, telemetry } = options;
  const { heads, nodes } = upstreams;
  const thread = new WriteSetThread({
    entry: workerEntry("writeSets"),
    onFailure: (err) => telemetry.log.warn({ err, chain: config.name }, "the thread of write sets failed"),
  });
  const common = {
    thread,
    unitsOf,
    blockTimeMs: () => heads.blockTimeMs,
    nodesFor: (block: BlockId) => {
      const current = heads.current();
      return current === undefined ? [] : rankNodes(nodes, block, current);
    },
  };
  const accessList = new AccessListSource({ ...common, headerOf: ({ number }) => heads.current()?.header(number) });
  const trace = new TraceSource({
    ...common,
    isAllowed: (block) => config.state.source === "trace" || hasKnownRules(options, block),
    readBlock: (block, reach) => readFullBlock(options, block, reach),
    systemContracts: () => [],
  });
  return {
    sources: selectWriteSetSources(sourceOption(config.state.source), [accessList, trace]),
    close: () => thread.close(),
  };
};

const sourceOption = (source: ChainConfig["state"]["source"]) => (source === "execute" ? "execution" : source);

const hasKnownRules = ({ upstreams, views: { forks } }: WriteSetSourcesOptions, { number }: BlockId): boolean => {
  const timestamp = upstreams.heads.current()?.at(number)?.timestamp;
  return forks !== undefined && timestamp !== undefined && areRulesKnown(forks, timestamp);
};

/** Reads a block with whole transactions from any node. */
const readFullBlock = async (
  { upstreams, views }: WriteSetSourcesOptions,
  { hash }: BlockId,
  { signal, deadlineMs }: Reach,
): Promise<Uint8Array> => {
  const request = {
    ...createCall("eth_getBlockByHash", [hash, true]),
    retention: "byHash",
    canonicalParams: "",
  } as const;
  const context = { view: views.view(), signal, deadlineMs, clientId: "forebay", bypassCache: true };
  const { body } = await upstreams.background.request(request, context);
  if (!(body instanceof Uint8Array)) {
    throw new Error("the block is a stream");
  }
  return body;
};
