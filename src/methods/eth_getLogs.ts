import type { Context } from "../core/context.ts";
import type { Heads } from "../core/heads.ts";
import { type BlockRange, type LogRange, resolveLogRange } from "../core/logRange.ts";
import { readLogQuery } from "../core/paramReaders.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { Body, PendingBlock, PendingView } from "../core/view.ts";
import { type LogFilter, type LogQuery, matchesLog } from "../ethereum/logFilter.ts";
import { listParts } from "../json/jsonBytes.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { admitsLogs } from "../logs/completeness.ts";
import { retryOnBranchChange } from "./branchRetry.ts";
import type { Method, MethodChain, MethodInput } from "./method.ts";
import { nodePendingLogs } from "./nodePendingLogs.ts";
import { type CanonicalJson, parseParams, readAny, required } from "./paramSpec.ts";
import { viewResponse, withPendingMode } from "./pendingReads.ts";

const COMMA = Buffer.from(",");

const isEmptyList = (bytes: Uint8Array): boolean => bytes.length === 2;

/** The list of these logs without its bracket in front. */
const tail = (logs: readonly Uint8Array[]): Uint8Array => Buffer.concat(listParts(logs).slice(1));

async function* appendToStream(
  list: AsyncIterable<Uint8Array>,
  logs: readonly Uint8Array[],
): AsyncGenerator<Uint8Array> {
  let last: Uint8Array | undefined;
  for await (const chunk of list) {
    if (chunk.length === 0) {
      continue;
    }
    if (last !== undefined) {
      yield last;
    }
    last = chunk;
  }
  if (last === undefined) {
    return;
  }
  // Only long lists are streamed, so that this one has at least one log.
  yield last.subarray(0, -1);
  yield COMMA;
  yield tail(logs);
}

/** Appends logs to a JSON list; each of `logs` is one JSON text. */
const appendLogs = (
  list: Uint8Array | AsyncIterable<Uint8Array>,
  logs: readonly Uint8Array[],
): Uint8Array | AsyncIterable<Uint8Array> => {
  if (logs.length === 0) {
    return list;
  }
  if (!(list instanceof Uint8Array)) {
    return appendToStream(list, logs);
  }
  const open = list.subarray(0, -1);
  return Buffer.concat(isEmptyList(list) ? [open, tail(logs)] : [open, COMMA, tail(logs)]);
};

type Range = Exclude<LogQuery["blocks"], { readonly blockHash: unknown }>;

/** Returns sealed and pending logs (docs/methods.md, eth_getLogs; docs/answers.md, Logs). */
export const eth_getLogs: Method = {
  name: "eth_getLogs",
  retention: "logs",
  atPending: "view",
  isSlow: true,
  prove: { byBlock: "logs" },
  handle: async (input) => {
    const [value] = parseParams(input.call.params, [required("filter", readAny)]) as readonly [CanonicalJson];
    return respondWithLogs(input, readLogQuery(value, input.chain.logLimits));
  },
};

/** Returns the logs of a parsed query. Installed filters are read by it too. */
export const respondWithLogs = async (input: MethodInput, query: LogQuery): Promise<RpcResponse> =>
  retryOnBranchChange(input.chain, input.context, (context) => respondInView({ ...input, context }, query));

const respondInView = async (input: MethodInput, { filter, blocks }: LogQuery): Promise<RpcResponse> => {
  const { chain, context } = input;
  if ("blockHash" in blocks) {
    const { pending } = context.view;
    const block = pending?.byHash(blocks.blockHash);
    if (pending === undefined || block === undefined) {
      return chain.logs.request(filter, blocks, context);
    }
    return withPendingMode(pending.mode, fromBlock(block, filter), context);
  }
  const { resolved, at } = await resolve(chain, blocks, context);
  const { pending } = at.view;
  const readSealed = async (): Promise<RpcResponse> =>
    resolved.sealed
      ? withProof(await chain.logs.request(filter, resolved.sealed, at), {
          ...{ chain, filter, range: resolved.sealed, heads: at.view.heads },
        })
      : { body: Buffer.from("[]"), status: { hit: "view" } };
  if (blocks.fromBlock !== "pending" && blocks.toBlock !== "pending" && resolved.pending === undefined) {
    return readSealed();
  }
  const read = async (): Promise<RpcResponse> => {
    rejectUnknownLogs(pending, resolved);
    const sealed = await readSealed();
    const logs = await logsAbove(input, filter, resolved, at);
    // No header binds pending logs.
    return { ...sealed, body: appendLogs(sealed.body, logs), grade: undefined };
  };
  return pending === undefined ? read() : withPendingMode(pending.mode, read(), context);
};

/** Values of a filter that are looked up in blooms for one response: enough for a client that polls. One takes about 1 us. */
const MAX_LOOKUPS = 64;

const countLookups = ({ addresses, topics }: LogFilter, { from, to }: BlockRange): number =>
  (1 + addresses.length + topics.reduce((sum, { length }) => sum + length, 0)) * Number(to - from + 1n);

interface SealedLogs {
  readonly chain: Pick<MethodChain, "ownHashes">;
  readonly filter: LogFilter;
  readonly range: BlockRange;
  readonly heads: Heads;
}

/** Labels an empty list as proven if the blooms of the newest headers, whose hashes were computed, show that there is no log. */
const withProof = (response: RpcResponse, { chain, filter, range, heads }: SealedLogs): RpcResponse => {
  const { body } = response;
  if (!(body instanceof Uint8Array) || !isEmptyList(body) || countLookups(filter, range) > MAX_LOOKUPS) {
    return response;
  }
  for (let number = range.from; number <= range.to; number++) {
    const block = heads.at(number);
    const header = heads.header(number);
    const isKnown = block !== undefined && header?.hash === block.hash && chain.ownHashes.hasComputed(header);
    if (!isKnown || admitsLogs(block.logsBloom, filter)) {
      return response;
    }
  }
  const last = heads.at(range.to);
  return last === undefined ? response : { ...response, block: last, grade: "proven" };
};

/** Throws RpcError if a requested pending block has transactions without receipts, so that logs would be left out. */
const rejectUnknownLogs = (pending: PendingView | undefined, { pending: range }: LogRange): void => {
  const block = range && pending && blocksIn(pending, range.from, range.to).find((each) => !each.hasAllReceipts);
  if (block !== undefined) {
    throw unknownLogs(block);
  }
};

interface ResolvedRange {
  readonly resolved: LogRange;
  readonly at: Context;
}

/** Resolves the requested blocks. After a start, the headers of the newest ones are read first: they verify the logs. */
const resolve = async (chain: MethodChain, range: Range, context: Context): Promise<ResolvedRange> => {
  const { resolved, at } = await resolveInView(chain, range, context);
  const view = resolved.sealed && (await chain.heads.reach(resolved.sealed, context));
  return view === undefined ? { resolved, at } : resolveInView(chain, range, context.with({ view }));
};

/** Resolves the blocks in one view: the request's, or a refreshed one if a bound is above the request's view. */
const resolveInView = async (
  chain: MethodChain,
  { fromBlock, toBlock }: Range,
  context: Context,
): Promise<ResolvedRange> => {
  const { heads, pending } = context.view;
  const { maxBlocks } = chain.logLimits;
  const inView = pending?.blocksFrom === "view" ? pending.newest?.number : undefined;
  const top = inView ?? heads.latest.number;
  const isAbove = [fromBlock, toBlock].some((bound) => typeof bound === "bigint" && bound > top);
  const latest = isAbove ? await chain.heads.refresh(context) : heads;
  if (latest === heads) {
    const isNodePending = pending?.blocksFrom === "node";
    const pendingNumber = isNodePending ? heads.latest.number + 1n : inView;
    const options = { heads, pendingNumber, isNodePending, maxBlocks };
    return { resolved: resolveLogRange(fromBlock, toBlock, options), at: context };
  }
  const resolved = resolveLogRange(fromBlock, toBlock, { heads: latest, maxBlocks });
  return { resolved, at: context.with({ view: { heads: latest } }) };
};

const fromBlock = async (block: PendingBlock, filter: LogFilter): Promise<RpcResponse> => {
  if (!block.hasAllReceipts) {
    throw unknownLogs(block);
  }
  const logs = block.logs().filter((log) => matchesLog(filter, log));
  return {
    ...viewResponse([]),
    body: appendLogs(
      Buffer.from("[]"),
      logs.map((log) => block.formatLog(log)),
    ),
  };
};

const unknownLogs = ({ number }: PendingBlock): RpcError =>
  new RpcError(
    CODES.SERVER,
    `the logs of pending block ${number} are not known: it is not executed, and the feed sent no receipts`,
  );

/** Returns the pending logs of the requested blocks, above the sealed ones. */
const logsAbove = async (
  input: MethodInput,
  filter: LogFilter,
  { pending: range }: LogRange,
  { view: { pending, heads } }: Context,
): Promise<readonly Body[]> => {
  if (pending === undefined || range === undefined) {
    return [];
  }
  if (pending.blocksFrom === "node") {
    return nodePendingLogs(input, filter, heads);
  }
  return logsIn(pending, range.from, range.to, filter);
};

const blocksIn = ({ blocks }: PendingView, from: bigint, to: bigint): readonly PendingBlock[] =>
  blocks.filter(({ number }) => number >= from && number <= to);

const logsIn = (pending: PendingView, from: bigint, to: bigint, filter: LogFilter): readonly Body[] =>
  blocksIn(pending, from, to).flatMap((block) =>
    block
      .logs()
      .filter((log) => matchesLog(filter, log))
      .map((log) => block.formatLog(log)),
  );
