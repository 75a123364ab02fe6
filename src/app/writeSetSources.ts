import type { ChainConfig } from "../config/schema.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import type { Reach } from "../core/node.ts";
import type { Address } from "../ethereum/hex.ts";
import { areRulesKnown } from "../ethereum/rules.ts";
import { createCall } from "../jsonrpc/call.ts";
import { rankNodes } from "../nodes/nodeSelection.ts";
import { ExecutionSource } from "../pending/executionSource.ts";
import { createUnitsOf } from "../state/providerUnits.ts";
import { AccessListSource } from "../state/sources/accessListSource.ts";
import type { FeedSource } from "../state/sources/feedSource.ts";
import { selectWriteSetSources } from "../state/sources/sourceOrder.ts";
import { SystemContracts } from "../state/sources/systemContracts.ts";
import { TraceSource } from "../state/sources/traceSource.ts";
import type { WriteSetThread } from "../state/sources/writeSetThread.ts";
import type { WriteSetSource } from "../state/writeSet.ts";
import type { PendingViews } from "./createPendingViews.ts";
import { directNodeCall } from "./directNodeCall.ts";
import type { Upstreams } from "./upstreams.ts";

export interface WriteSetSourcesOptions {
  readonly config: Pick<ChainConfig, "state">;
  readonly upstreams: Upstreams;
  readonly views: Pick<PendingViews, "view" | "forks" | "execution">;
  /** Undefined if the chain has no feed. */
  readonly feedSource: FeedSource | undefined;
  readonly writeSetThread: WriteSetThread;
  /** Aborts when the chain is closed. */
  readonly signal: AbortSignal;
}

const headerOf = (heads: Heads | undefined, { number, hash }: BlockId) =>
  heads?.at(number)?.hash === hash ? heads.header(number) : undefined;

/** Creates the function that reads a block with its whole transactions, without marking the chain active. */
const createBlockReader =
  ({ upstreams, views }: WriteSetSourcesOptions) =>
  async (block: BlockId, { signal, deadlineMs }: Reach): Promise<Uint8Array> => {
    const request = {
      ...createCall("eth_getBlockByHash", [block.hash, true]),
      retention: "never" as const,
      canonicalParams: "",
      block,
      blockField: "hash" as const,
      nullIsError: true,
    };
    const context = { view: views.view(), signal, deadlineMs, clientId: "forebay", bypassCache: true };
    const { body } = await upstreams.background.request(request, context);
    if (!(body instanceof Uint8Array)) {
      throw new Error("the response with a block is a stream");
    }
    return body;
  };

const areRulesKnownAt = ({ upstreams, views }: WriteSetSourcesOptions, { number }: BlockId): boolean => {
  const timestamp = upstreams.heads.current()?.at(number)?.timestamp;
  return views.forks !== undefined && timestamp !== undefined && areRulesKnown(views.forks, timestamp);
};

const createTraceSource = (options: WriteSetSourcesOptions): TraceSource => {
  const { config, upstreams, views } = options;
  const callNode = directNodeCall(upstreams, () => views.view());
  const contracts = new SystemContracts(() => callNode("eth_config", []));
  return new TraceSource({
    ...sourceParts(options),
    isAllowed: (block) => config.state.source === "trace" || areRulesKnownAt(options, block),
    readBlock: createBlockReader(options),
    systemContracts: (): Promise<readonly Address[]> => contracts.read(),
  });
};

const sourceParts = ({ upstreams, writeSetThread }: WriteSetSourcesOptions) => {
  const { heads, nodes } = upstreams;
  return {
    thread: writeSetThread,
    nodesFor: (block: BlockId) => {
      const current = heads.current();
      const usable = nodes.filter(({ available }) => available);
      return current === undefined ? [] : rankNodes(usable, block, current);
    },
    blockTimeMs: () => heads.blockTimeMs,
    unitsOf: createUnitsOf(),
  };
};

/** Creates the source that executes blocks, with a thread of its own. Undefined if the chain cannot be executed here. */
const createExecutionSource = (options: WriteSetSourcesOptions): ExecutionSource | undefined => {
  const { upstreams, views, writeSetThread, signal } = options;
  const executor = views.execution?.executor();
  if (executor === undefined) {
    return undefined;
  }
  signal.addEventListener("abort", () => void executor.close(), { once: true });
  return new ExecutionSource({
    executor,
    thread: writeSetThread,
    isExecutable: (block) => views.forks?.op !== undefined && areRulesKnownAt(options, block),
    readBlock: createBlockReader(options),
    blockTimeMs: () => upstreams.heads.blockTimeMs,
    unitsOf: createUnitsOf(),
  });
};

/** Creates the sources of write sets that `state.source` allows, in the order in which they are asked. */
export const createWriteSetSources = (options: WriteSetSourcesOptions): readonly WriteSetSource[] => {
  const { config, upstreams, feedSource } = options;
  const { source } = config.state;
  if (source === "execute") {
    const execution = createExecutionSource(options);
    return execution === undefined ? [] : [execution];
  }
  const accessList = new AccessListSource({
    ...sourceParts(options),
    headerOf: (block) => headerOf(upstreams.heads.current(), block),
  });
  const available = [...(feedSource === undefined ? [] : [feedSource]), accessList, createTraceSource(options)];
  return selectWriteSetSources(source, available);
};
