import { LeasedValues } from "../../cache/leasedValues.ts";
import { type BlockId, type HeaderFields, isCanonicalIn } from "../../core/heads.ts";
import { areRulesKnown, type BlobSchedule, newestRulesAt } from "../../ethereum/rules.ts";
import type { Upstreams } from "../../heads/upstreams.ts";
import { rankNodes } from "../../nodes/nodeSelection.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import type { StateCost } from "../cost.ts";
import type { StateChain, StateParts } from "../stateParts.ts";
import { selectWriteSetSources, type WriteSetSource } from "../writeSet.ts";
import { AccessListSource } from "./accessListSource.ts";
import { ExecutedSource } from "./executedSource.ts";
import { SharedSource } from "./sharedSource.ts";
import type { SourceGuard } from "./sourceGuard.ts";
import type { SourceNodes } from "./sourceNodes.ts";
import { TraceSource } from "./traceSource.ts";
import { WitnessedSource } from "./witnessedSource.ts";
import type { WriteSetThread } from "./writeSetThread.ts";

export interface WriteSetSourcesOptions extends StateParts {
  readonly views: Pick<StateChain, "forks" | "systemContracts" | "findExecuted">;
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

const areRulesKnownAt = ({ upstreams, views }: WriteSetSourcesOptions, { number }: BlockId): boolean => {
  const timestamp = upstreams.heads.current()?.at(number)?.timestamp;
  return views.forks !== undefined && timestamp !== undefined && areRulesKnown(views.forks, timestamp);
};

const blobsAt = ({ upstreams, views }: WriteSetSourcesOptions, { number }: BlockId): BlobSchedule | undefined => {
  const timestamp = upstreams.heads.current()?.at(number)?.timestamp;
  return timestamp === undefined ? undefined : views.forks && newestRulesAt(views.forks, number, timestamp).blobs;
};

const createTraceSource = (options: WriteSetSourcesOptions, nodes: SourceNodes): TraceSource => {
  const { config, views, thread, cost, guard } = options;
  return new TraceSource({
    ...nodes,
    nodesFor: (block) => nodes.nodesFor(block).filter(({ name }) => !guard.isSuspended(name)),
    thread,
    isAllowed: (block) => config.state.source === "trace" || areRulesKnownAt(options, block),
    readBlock: options.pipeline.readBlock,
    systemContracts: () => views.systemContracts,
    blobs: (block) => blobsAt(options, block),
    unitsOf: cost.unitsOf,
  });
};

/** With Redis, replicas share the write sets of a source. */
const createShare = ({
  upstreams,
  pipeline,
  guard,
}: WriteSetSourcesOptions): ((source: WriteSetSource) => WriteSetSource) => {
  const { runScript, maxScriptMs: maxReplyMs } = pipeline;
  if (runScript === undefined) {
    return (source) => source;
  }
  const values = new LeasedValues(runScript);
  const origins = new Map(upstreams.nodes.map(({ name, origin }) => [name, origin]));
  return (source) =>
    new SharedSource(source, {
      ...{ values, origins, maxReplyMs },
      mayUse: (node) => !guard.isSuspended(node),
      blockTimeMs: () => upstreams.heads.blockTimeMs,
    });
};

const headerOf =
  ({ upstreams }: WriteSetSourcesOptions) =>
  (block: BlockId): HeaderFields | undefined => {
    const heads = upstreams.heads.current();
    return heads !== undefined && isCanonicalIn(heads, block) ? heads.header(block.number) : undefined;
  };

/** Faster chains have no time for a witness of each block. */
const MIN_PROVEN_BLOCK_MS = 1_000;

/** Returns what proves the write sets of a source, if `state.prove` wants it: those of feeds only if it is true. */
const createProof = (
  options: WriteSetSourcesOptions,
  nodes: SourceNodes,
): ((source: WriteSetSource) => WriteSetSource) => {
  const { config, thread, cost, telemetry } = options;
  const { prove } = config.state;
  return (source) =>
    prove === false || (prove === "auto" && source.kind === "feed")
      ? source
      : new WitnessedSource(source, {
          ...{ ...nodes, thread, cost },
          nowMs: () => performance.now(),
          isAllowed: (block) =>
            areRulesKnownAt(options, block) && (prove === true || nodes.blockTimeMs() >= MIN_PROVEN_BLOCK_MS),
          isAlways: prove === true,
          headerOf: headerOf(options),
          onResult: (kind, result) => telemetry.metrics.stateProofs.inc({ chain: config.name, source: kind, result }),
        });
};

/** Creates the sources of write sets that `state.source` allows, in the order in which they are asked. */
export const createWriteSetSources = (options: WriteSetSourcesOptions): readonly WriteSetSource[] => {
  const { config, upstreams, views, thread, cost } = options;
  const nodes = createSourceNodes(upstreams);
  const share = createShare(options);
  const accessList = new AccessListSource({
    ...nodes,
    thread,
    headerOf: headerOf(options),
    unitsOf: cost.unitsOf,
  });
  const proven = createProof(options, nodes);
  const hasFeed = config.pending.feeds.length > 0;
  const available = [
    ...(hasFeed ? [proven(new ExecutedSource(views.findExecuted))] : []),
    share(accessList),
    proven(share(createTraceSource(options, nodes))),
  ];
  return selectWriteSetSources(config.state.source, available);
};
