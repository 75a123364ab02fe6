import { LeasedValues } from "../../cache/leasedValues.ts";
import { type BlockId, canonicalHeader, type HeaderFields } from "../../core/heads.ts";
import { areRulesKnown, type BlobSchedule, newestRulesAt } from "../../ethereum/rules.ts";
import type { Upstreams } from "../../heads/upstreams.ts";
import { rankNodes } from "../../nodes/nodeSelection.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import type { StateCost } from "../cost.ts";
import type { StateChain, StateParts } from "../stateParts.ts";
import type { WriteSetSource } from "../writeSet.ts";
import { FeedSource } from "./feedSource.ts";
import { ListSource } from "./listSource.ts";
import { SharedWrites } from "./sharedWrites.ts";
import type { SourceGuard } from "./sourceGuard.ts";
import type { SourceNodes } from "./sourceNodes.ts";
import { TraceSource } from "./traceSource.ts";
import { Witness } from "./witness.ts";
import type { WriteSetThread } from "./writeSetThread.ts";

export interface WriteSetSourcesOptions extends StateParts {
  readonly served: Pick<StateChain, "forks" | "systemContracts" | "pending">;
  readonly thread: WriteSetThread;
  readonly cost: StateCost;
  readonly guard: SourceGuard;
  readonly telemetry: Pick<Telemetry, "metrics">;
}

const createSourceNodes = ({ nodes, heads }: Upstreams): SourceNodes => ({
  nodesFor: (block) => {
    const current = heads.current();
    const available = nodes.filter((node) => node.available);
    return current === undefined ? available : rankNodes(available, block, current);
  },
  blockTimeMs: () => heads.blockTimeMs,
});

const timestampAt = ({ upstreams }: WriteSetSourcesOptions, { number }: BlockId): bigint | undefined =>
  upstreams.heads.current()?.at(number)?.timestamp;

const areRulesKnownAt = (options: WriteSetSourcesOptions, block: BlockId): boolean => {
  const { served } = options;
  const timestamp = timestampAt(options, block);
  return served.forks !== undefined && timestamp !== undefined && areRulesKnown(served.forks, timestamp);
};

const blobsAt = (options: WriteSetSourcesOptions, block: BlockId): BlobSchedule | undefined => {
  const { forks } = options.served;
  const timestamp = timestampAt(options, block);
  return timestamp === undefined ? undefined : forks && newestRulesAt(forks, block.number, timestamp).blobs;
};

const headerOf =
  ({ upstreams }: WriteSetSourcesOptions) =>
  (block: BlockId): HeaderFields | undefined =>
    canonicalHeader(upstreams.heads.current(), block);

/** With Redis, replicas share write sets. */
const createShared = ({ upstreams, pipeline, guard }: WriteSetSourcesOptions): SharedWrites | undefined => {
  const { runScript, maxScriptMs: maxReplyMs } = pipeline;
  return (
    runScript &&
    new SharedWrites({
      ...{ values: new LeasedValues(runScript), maxReplyMs },
      origins: new Map(upstreams.nodes.map(({ name, origin }) => [name, origin])),
      mayUse: (node) => !guard.isSuspended(node),
      blockTimeMs: () => upstreams.heads.blockTimeMs,
    })
  );
};

/** Faster chains have no time for a witness of each block. */
const MIN_PROVEN_BLOCK_MS = 1_000;

/** Returns what proves write sets, unless `state.prove` is false. */
const createWitness = (options: WriteSetSourcesOptions, nodes: SourceNodes): Witness | undefined => {
  const { config, thread, cost, telemetry } = options;
  const { prove } = config.state;
  return prove === false
    ? undefined
    : new Witness({
        ...{ ...nodes, thread, cost },
        isAllowed: (block) =>
          areRulesKnownAt(options, block) && (prove === true || nodes.blockTimeMs() >= MIN_PROVEN_BLOCK_MS),
        isAlways: prove === true,
        headerOf: headerOf(options),
        onResult: (kind, result) => telemetry.metrics.stateProofs.inc({ chain: config.name, source: kind, result }),
      });
};

/** Creates the sources of write sets that `state.source` allows, in the order in which they are asked. */
export const createWriteSetSources = (options: WriteSetSourcesOptions): readonly WriteSetSource[] => {
  const { config, upstreams, served, thread, cost, guard } = options;
  const { source, prove } = config.state;
  const nodes = createSourceNodes(upstreams);
  const shared = createShared(options);
  const witness = createWitness(options, nodes);
  const hasFeed = config.pending.feeds.length > 0;
  const sources: readonly WriteSetSource[] = [
    ...(hasFeed ? [new FeedSource(served.pending.findExecuted, prove === true ? witness : undefined)] : []),
    new ListSource({ ...nodes, thread, shared, headerOf: headerOf(options), unitsOf: cost.unitsOf }),
    new TraceSource({
      ...{ ...nodes, thread, shared, witness },
      nodesFor: (block) => nodes.nodesFor(block).filter(({ name }) => !guard.isSuspended(name)),
      isAllowed: (block) => source === "trace" || areRulesKnownAt(options, block),
      readBlock: options.pipeline.readBlock,
      systemContracts: () => served.systemContracts,
      blobs: (block) => blobsAt(options, block),
      unitsOf: cost.unitsOf,
    }),
  ];
  return sources.filter(({ kind }) => source === "auto" || kind === source);
};
