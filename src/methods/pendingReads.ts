import type { Context } from "../core/context.ts";
import { isAtLeast } from "../core/grade.ts";
import type { Heads } from "../core/heads.ts";
import { NodeError, type NodeErrorKind } from "../core/node.ts";
import { isNull, parsedResult, type RpcResponse } from "../core/rpcSource.ts";
import type { PendingBlock, PendingMode } from "../core/view.ts";
import { formatData, formatQuantity, type Hash, isQuantity } from "../ethereum/hex.ts";
import { asText, formatJson, isFields } from "../json/jsonBytes.ts";
import { createCall } from "../jsonrpc/call.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { type ResolvedBlock, resolveBlock } from "./blockParams.ts";
import type { BlockReadSpec, PendingRead } from "./blockReadSpec.ts";
import type { MethodInput } from "./method.ts";
import { type CanonicalJson, hexOf } from "./paramSpec.ts";

/** Creates a response from the view, from a value or from a formatted body. */
export const viewResponse = (value: CanonicalJson | Uint8Array): RpcResponse => ({
  body: value instanceof Uint8Array ? value : formatJson(value),
  status: { hit: "view" },
});

/** Returns the newest pending block, with number and hash (docs/methods.md, Block object). */
export const readPendingBlock = async ({ values, pending, atBase }: PendingRead): Promise<RpcResponse> =>
  pending.newest ? viewResponse(pending.newest.body(values[1] === true)) : atBase();

export const readPendingTransactionCount = async ({ pending, atBase }: PendingRead): Promise<RpcResponse> =>
  pending.newest ? viewResponse(formatQuantity(pending.newest.transactionHashes.length)) : atBase();

export const readPendingTransaction = async ({ values, pending, atBase }: PendingRead): Promise<RpcResponse> =>
  pending.newest ? viewResponse(pending.newest.transaction(Number(values[1])) ?? null) : atBase();

export const readPendingReceipts = async ({ input, pending, atBase }: PendingRead): Promise<RpcResponse> => {
  if (!pending.newest) {
    return atBase();
  }
  const body = pending.newest.receipts();
  if (body) {
    return viewResponse(body);
  }
  const { chain, context } = input;
  const response = await chain.reads.request(
    { ...createCall("eth_getBlockReceipts", ["pending"]), retention: "never", canonicalParams: "" },
    context,
  );
  if (!hasReceiptsOf(response, pending.newest.transactionHashes)) {
    throw unknownReceipts(pending.newest);
  }
  return response;
};

const unknownReceipts = ({ number }: PendingBlock): RpcError =>
  new RpcError(
    CODES.SERVER,
    `the receipts of pending block ${number} are not known: it is not executed, and the feed sent none`,
  );

/** Whether a node's receipts are those of these transactions. Its pending block may be another one, or have fewer transactions. */
const hasReceiptsOf = (response: RpcResponse, hashes: readonly Hash[]): boolean => {
  const receipts = parsedResult(response);
  return (
    Array.isArray(receipts) &&
    receipts.length === hashes.length &&
    receipts.every((receipt, index) => isFields(receipt) && receipt.transactionHash === hashes[index])
  );
};

export const readPendingBalance = async ({ values, pending, atBase }: PendingRead): Promise<RpcResponse> => {
  const written = pending.account(hexOf(values[0]));
  return written ? viewResponse(formatQuantity(written.account?.balance ?? 0n)) : atBase();
};

export const readPendingCode = async ({ values, pending, atBase }: PendingRead): Promise<RpcResponse> => {
  const written = pending.account(hexOf(values[0]));
  if (written?.code) {
    return viewResponse(formatData(written.code));
  }
  return written?.isCleared ? viewResponse("0x") : atBase();
};

const formatSlot = (value: Uint8Array): string => `0x${formatData(value).slice(2).padStart(64, "0")}`;

/** Returns a slot's value. A slot that the pending blocks have not written has its value at the view's base block. */
export const readPendingStorage = async ({ values, pending, atBase }: PendingRead): Promise<RpcResponse> => {
  const value = pending.storage(hexOf(values[0]), hexOf(values[1]));
  return value === undefined ? atBase() : viewResponse(formatSlot(value));
};

/** Returns the nonce after all pre-confirmed transactions. The method adds accepted transactions. */
export const readPendingNonce = async ({ values, pending, atBase }: PendingRead): Promise<RpcResponse> => {
  const written = pending.account(hexOf(values[0]));
  return written ? viewResponse(formatQuantity(written.account?.nonce ?? 0n)) : atBase();
};

/** Returns the nonce of a response, or zero if it has none. */
export const nonceIn = (response: RpcResponse): bigint => {
  const nonce = parsedResult(response);
  return isQuantity(nonce) ? BigInt(nonce) : 0n;
};

/** Returns slots by address: from the view, and missing ones with one request at the base block. */
export const readPendingStorageValues = async ({ values, pending, atBase }: PendingRead): Promise<RpcResponse> => {
  const slots = Object.entries(values[0] as Readonly<Record<string, readonly string[]>>);
  const written = slots.map(([address, positions]) =>
    positions.map((position) => pending.storage(hexOf(address), hexOf(position))),
  );
  const complete = written.every((list) => list.every((value) => value !== undefined));
  const base = complete ? undefined : await atBase();
  const baseValues: Readonly<Record<string, readonly string[]>> =
    base?.body instanceof Uint8Array ? JSON.parse(asText(base.body)) : {};
  const merged = slots.map(([address, positions], at): [string, CanonicalJson] => [
    address,
    positions.map((_, index) => {
      const value = written[at]?.[index];
      return value === undefined ? (baseValues[address]?.[index] ?? null) : formatSlot(value);
    }),
  ]);
  return { ...viewResponse(Object.fromEntries(merged)), ...(base && { status: base.status }) };
};

/** The modes in which all that the view shows is executed, with the right gas, bloom and receipts root. */
const EXECUTED: ReadonlySet<PendingMode> = new Set(["live", "degraded"]);

/** Adds the pending mode to a response. What the view has is checked by its execution. */
export const ofMode = (mode: PendingMode, response: RpcResponse): RpcResponse =>
  response.status.hit === "view"
    ? { ...response, pending: mode, grade: EXECUTED.has(mode) ? "checked" : undefined }
    : { ...response, pending: mode };

/**
 * Reads what the pending blocks have not written at their base block. That it is not written, no header shows: such a value is checked at
 * most, by the execution.
 */
const readBelow =
  (mode: PendingMode, readAt: ReadsBelowPending["readAt"], base: ResolvedBlock): PendingRead["atBase"] =>
  async () => {
    const response = await readAt(base);
    const isVerified = isAtLeast(response.grade, "checked") && EXECUTED.has(mode);
    return { ...response, grade: isVerified ? "checked" : undefined };
  };

/** If there is an error instead of a result at `pending`, records the mode in the client's request. */
export const orFailedPending = async <T>(
  mode: PendingMode,
  result: Promise<T>,
  { progress }: Pick<Context, "progress">,
): Promise<T> => {
  try {
    return await result;
  } catch (error) {
    if (progress !== undefined) {
      progress.failedPending ??= mode;
    }
    throw error;
  }
};

/** Adds the pending mode to a response. If there is an error instead, records the mode in the client's request. */
export const withPendingMode = async (
  mode: PendingMode,
  response: Promise<RpcResponse>,
  context: Pick<Context, "progress">,
): Promise<RpcResponse> => ofMode(mode, await orFailedPending(mode, response, context));

/** How a read at `pending` reads what the view does not have. */
export interface ReadsBelowPending {
  readonly readAt: (block: ResolvedBlock) => Promise<RpcResponse>;
  /** Reads at latest, as if the client had asked for it. */
  readonly readLatest: () => Promise<RpcResponse>;
}

/**
 * Answers a read at `pending`: from the view, or from the node's pending block, or at latest.
 * A missing pending block is never `null` (docs/answers.md, Blocks and pending).
 */
export const atPending = async (
  spec: BlockReadSpec,
  input: MethodInput,
  values: readonly CanonicalJson[],
  { readAt, readLatest }: ReadsBelowPending,
): Promise<RpcResponse> => {
  const { pending, heads } = input.context.view;
  if (pending === undefined) {
    return readLatest();
  }
  const respond = async (): Promise<RpcResponse> => {
    const source = spec.kind === "state" ? pending.stateFrom : pending.blocksFrom;
    if (source === "view" && spec.pending) {
      const { base, mode } = pending;
      const atBase = readBelow(mode, readAt, resolveBlock({ hash: base.hash, requireCanonical: false }, heads));
      return spec.pending({ input, values, pending, atBase });
    }
    return source === "latest"
      ? readLatest()
      : readNodePending(spec, heads, () => readAt({ kind: "pending" }), readLatest);
  };
  return withPendingMode(pending.mode, respond(), input.context);
};

/**
 * Answers a read by the hash of a pending block that was shown in the last 10 s, from the view of that moment.
 * Returns undefined if there is none: nodes answer then.
 */
export const atPendingHash = (
  spec: BlockReadSpec,
  input: MethodInput,
  values: readonly CanonicalJson[],
  { hash, readAt }: { readonly hash: Hash; readonly readAt: (block: ResolvedBlock) => Promise<RpcResponse> },
): Promise<RpcResponse> | undefined => {
  const { pending: current, heads } = input.context.view;
  if (current === undefined || spec.pending === undefined) {
    return undefined;
  }
  if (spec.kind === "block") {
    const block = current.byHash(hash);
    return block && withPendingMode(current.mode, receiptsOfBlock(block), input.context);
  }
  const pending = current.atHash(hash);
  if (pending === undefined) {
    return undefined;
  }
  const base = { hash: pending.base.hash, requireCanonical: false };
  const atBase = readBelow(current.mode, readAt, resolveBlock(base, heads));
  return withPendingMode(current.mode, spec.pending({ input, values, pending, atBase }), input.context);
};

const receiptsOfBlock = async (block: PendingBlock): Promise<RpcResponse> => {
  const body = block.receipts();
  if (body === undefined) {
    throw unknownReceipts(block);
  }
  return viewResponse(body);
};

/** Reads the node's pending block. If there is none, or it is not above the head, it reads latest instead. */
const readNodePending = async (
  spec: BlockReadSpec,
  heads: Heads,
  readPending: () => Promise<RpcResponse>,
  readLatest: () => Promise<RpcResponse>,
): Promise<RpcResponse> => {
  const response = await readPending().catch((error: unknown) => {
    if (error instanceof NodeError && NO_PENDING_BLOCK.has(error.kind)) {
      return undefined;
    }
    throw error;
  });
  if (response === undefined || (isNull(response) && !spec.isNullable)) {
    return readLatest();
  }
  const number = spec.blockField === "hash" ? numberIn(response) : undefined;
  return number !== undefined && number <= heads.latest.number ? readLatest() : response;
};

const NO_PENDING_BLOCK: ReadonlySet<NodeErrorKind> = new Set(["tagUnsupported", "missingData"]);

/** Returns the `number` of a block response. */
const numberIn = (response: RpcResponse): bigint | undefined => {
  const block = parsedResult(response);
  return isFields(block) && typeof block.number === "string" ? BigInt(block.number) : undefined;
};
