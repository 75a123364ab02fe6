import { type BlockId, type Heads, isCanonicalIn } from "../core/heads.ts";
import { type BlockRange, resolveLogRange } from "../core/logRange.ts";
import { readBlockNumberOrTagOrHash, readLogQuery } from "../core/paramReaders.ts";
import { isFreshFromNode, isNull, parsedResult, type RpcResponse } from "../core/rpcSource.ts";
import { EMPTY_OMMERS_HASH } from "../ethereum/blockHeader.ts";
import {
  type Address,
  formatQuantity,
  formatWord,
  type Hash,
  isData,
  isHash,
  isQuantity,
  lowerPrefix,
  parseData,
} from "../ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../ethereum/keccak.ts";
import type { LogFilter, LogQuery } from "../ethereum/logFilter.ts";
import { asText, formatJson, isFields } from "../json/jsonBytes.ts";
import { members } from "../json/members.ts";
import { type Awaitable, createCall } from "../jsonrpc/call.ts";
import { overBudget } from "../jsonrpc/rpcError.ts";
import { admitsLogs } from "../logs/completeness.ts";
import { formatList, joinLogs } from "../logs/mergeLogs.ts";
import { createLogMatcher } from "../logs/requestLogs.ts";
import { scanLogs } from "../logs/scanLogs.ts";
import { provenValuesOf } from "../state/fetch/proofReader.ts";
import type { StateField } from "../state/stateKey.ts";
import type { StateMethod } from "../state/stateReads.ts";
import { readProvenAccount } from "../verification/provenAccount.ts";
import { isInRing, READ_BLOCK, resolveBlock } from "./blockParams.ts";
import { lowerHash } from "./committedBlocks.ts";
import { held } from "./executions.ts";
import type { JsonItems } from "./jsonItems.ts";
import type { BlockAnswer, Prove } from "./method.ts";
import { type CanonicalJson, parseParams, readAddress, readAny, readSlot, required } from "./paramSpec.ts";
import { isAnchored, isCommitted, NotProvenError, type ProvenCall } from "./proofRules.ts";
import type { ProvenPart } from "./provenParts.ts";

// The answers of the column `prove` of the method table, from blocks, proofs and logs that headers bind.

/** Creates the response that is computed from proven parts of a block. */
const provenResponse = (value: CanonicalJson | Uint8Array, block: BlockId): RpcResponse => ({
  body: value instanceof Uint8Array ? value : formatJson(value),
  status: { hit: "local" },
  block,
  grade: "proven",
});

/** A part of a block whose header and transactions are verified. */
interface ReadPart {
  readonly block: BlockId;
  readonly items: JsonItems;
}

/**
 * Reads a part of the block that a parameter names. Returns undefined if its transactions do not follow from a header that the request
 * or the served chain names.
 */
const readPart = async (proven: ProvenCall, part: ProvenPart, named: unknown): Promise<ReadPart | undefined> => {
  const hash = isFields(named) ? named.blockHash : isHash(lowerPrefix(named)) ? named : undefined;
  const method = hash === undefined ? "eth_getBlockByNumber" : "eth_getBlockByHash";
  const { block, grade, body } = await proven.read(method, [hash ?? named, true]);
  const isRooted = grade !== undefined && block !== undefined && isAnchored(block, proven);
  if (!isRooted || !(body instanceof Uint8Array)) {
    return undefined;
  }
  const { provenBlocks } = proven.chain;
  const needsReceipts = part === "receipts" || part === "logs";
  const format = async () => {
    const receipts = needsReceipts ? await readReceipts(proven, block) : undefined;
    return provenBlocks.format({ part, block, body, receipts }, proven.context);
  };
  const items = provenBlocks.find(block.hash, part) ?? (await format());
  return items && { block, items };
};

/** Reads the receipts of a block, which its root verifies. Throws without them. */
const readReceipts = async ({ context, read }: ProvenCall, block: BlockId): Promise<Uint8Array> => {
  const isCanonical = isCanonicalIn(context.view.heads, block);
  const { grade, body } = await read("eth_getBlockReceipts", [isCanonical ? formatQuantity(block.number) : block.hash]);
  if (grade === undefined || !(body instanceof Uint8Array)) {
    throw new NotProvenError("noProof", grade);
  }
  return body;
};

const NO_UNCLES = JSON.stringify(EMPTY_OMMERS_HASH);

/** A block without uncles has the hash of an empty list. Another number does not follow from the block. */
const uncleCount = ({ text }: JsonItems): string | undefined => {
  const hasNone = members(text).some(({ key, value }) => key === "sha3Uncles" && asText(value) === NO_UNCLES);
  return hasNone ? formatQuantity(0) : undefined;
};

const PARTS: Readonly<Record<Exclude<BlockAnswer, "block" | "logs">, ProvenPart>> = {
  transactionCount: "hashes",
  uncleCount: "hashes",
  transaction: "transactions",
  transactionAt: "transactions",
  receipt: "receipts",
  receipts: "receipts",
};

/** The block of an answer, as a call can name it, and the index in it. */
interface Place {
  readonly named: unknown;
  readonly index?: bigint | undefined;
}

/** Finds the place of an answer. Undefined if the served chain does not have the transaction. */
const placeOf = async (proven: ProvenCall, answer: BlockAnswer, first: RpcResponse): Promise<Place | undefined> => {
  const [named, option] = proven.call.params;
  if (answer !== "transaction" && answer !== "receipt") {
    const index = lowerPrefix(option);
    return { named, index: isQuantity(index) ? BigInt(index) : undefined };
  }
  const hash = first.block?.hash;
  const found = hash && (await readPart(proven, "hashes", hash));
  const index = found?.items.indexOf(JSON.stringify(String(named).toLowerCase())) ?? -1;
  return index === -1 ? undefined : { named: hash, index: BigInt(index) };
};

/** Takes an answer from a part of its block. Undefined: it does not follow. */
const valueIn = (
  items: JsonItems,
  answer: BlockAnswer,
  index: bigint | undefined,
): string | Uint8Array | null | undefined => {
  switch (answer) {
    case "transactionCount":
      return formatQuantity(items.length);
    case "uncleCount":
      return uncleCount(items);
    case "block":
    case "receipts":
      return items.whole;
    default: {
      if (index === undefined) {
        return undefined;
      }
      // The block also shows that it has nothing at an index.
      const item = index < items.length ? items.at(Number(index)) : null;
      return item && new Uint8Array(item);
    }
  }
};

/** Computes an answer from its block in full. If it does not follow, the answer of the read is returned. */
const proveByBlock = async (proven: ProvenCall, answer: Exclude<BlockAnswer, "logs">): Promise<RpcResponse> => {
  const { call, context, read } = proven;
  const first = await read(call.method, call.params);
  if (first.grade === "proven" || (isNull(first) && answer !== "transactionAt")) {
    return first;
  }
  const ofBlock = call.params[1] === true ? "transactions" : "hashes";
  const place = await placeOf(proven, answer, first);
  const found = place && (await readPart(proven, answer === "block" ? ofBlock : PARTS[answer], place.named));
  const value = found && valueIn(found.items, answer, place.index);
  return found === undefined || value === undefined ? first : held(provenResponse(value, found.block), context);
};

/** Returns the answer if the value is known and proven. */
const findKnown = async (
  { chain, call, context }: ProvenCall,
  field: StateField,
  [address, slot, parameter]: readonly [Address, Hash | undefined, unknown],
): Promise<RpcResponse | undefined> => {
  const block = resolveBlock(readBlockNumberOrTagOrHash(parameter, READ_BLOCK), context.view.heads);
  const method = call.method as StateMethod;
  return isInRing(block)
    ? chain.state?.findProven({ method, key: { field, address, slot }, block, context })
    : undefined;
};

/** Answers with a state value. If it is not known and proven, one proof is read. Its values become known. */
const proveState = async (proven: ProvenCall, field: StateField): Promise<RpcResponse> => {
  const { params } = proven.call;
  const specs = [required("address", readAddress), ...(field === "slot" ? [required("position", readSlot)] : [])];
  const [address, ...slots] = parseParams(params.slice(0, specs.length), specs) as [Address, ...Hash[]];
  const parameter = params[specs.length] ?? "latest";
  const known = await findKnown(proven, field, [address, slots[0], parameter]);
  if (known !== undefined) {
    return known;
  }
  const enter = proven.chain.state?.beginProof();
  const response = await proven.read("eth_getProof", [address, slots, parameter]);
  const proof = parsedResult(response);
  const { block } = response;
  if (response.grade !== "proven" || block === undefined || !isFields(proof)) {
    throw new NotProvenError("noProof", response.grade);
  }
  const account = readProvenAccount(proof);
  if (isFreshFromNode(response)) {
    enter?.(provenValuesOf(account, address, slots), block);
  }
  switch (field) {
    case "code":
      return answerCode(proven, account.codeHash, { address, block });
    case "slot":
      return provenResponse(formatWord(account.slot(slots[0] ?? "0x")), block);
    default:
      return provenResponse(formatQuantity(account[field]), block);
  }
};

const hasHash = (body: RpcResponse["body"], codeHash: string): boolean => {
  const code = parsedResult({ body });
  return isData(code) && keccak256Hex(parseData(code)) === codeHash;
};

/** Reads the code of a proven hash. If it is another one, a node that has the right one is asked. */
const answerCode = async (
  { chain, context, read }: ProvenCall,
  codeHash: Hash,
  { address, block }: { readonly address: Address; readonly block: BlockId },
): Promise<RpcResponse> => {
  if (codeHash === EMPTY_CODE_HASH) {
    return provenResponse("0x", block);
  }
  const call = createCall("eth_getCode", [address, { blockHash: block.hash }]);
  const known = await read(call.method, call.params);
  if (hasHash(known.body, codeHash)) {
    return { ...known, block, grade: "proven" };
  }
  const isComplete = (body: Uint8Array): boolean => hasHash(body, codeHash);
  const request = { ...call, retention: "never", canonicalParams: "", isComplete } as const;
  const response = await chain.nodes.request(request, context);
  return hasHash(response.body, codeHash) ? { ...response, block, grade: "proven" } : response;
};

/** The blocks whose receipts one query may need. */
const MAX_BLOCKS_WITH_LOGS = 64;
/** The blocks whose receipts one query reads at a time. */
const BLOCKS_AT_ONCE = 8;

/** A block of the range whose header's hash was computed. */
interface ProvenHeader {
  readonly block: BlockId;
  readonly bloom: Uint8Array;
}

/** Returns the headers of the range. Throws unless the head commits to all of them. */
const headersOf = (proven: ProvenCall, { from, to }: BlockRange): readonly ProvenHeader[] => {
  const { heads } = proven.context.view;
  const lowest = heads.at(from);
  if (lowest === undefined || !isCommitted(lowest, proven)) {
    throw new NotProvenError("noProof");
  }
  const headers: ProvenHeader[] = [];
  for (let number = from; number <= to; number++) {
    const header = heads.header(number);
    if (!isData(header?.logsBloom)) {
      throw new NotProvenError("noProof");
    }
    headers.push({ block: { number, hash: lowerHash(header.hash) }, bloom: parseData(header.logsBloom) });
  }
  return headers;
};

/** Returns the logs of a block that match, as `joinLogs` does. The receipts root of the block verifies them. They count until they are sent. */
const logsOf = async (proven: ProvenCall, { number, hash }: BlockId, filter: LogFilter): Promise<Uint8Array> => {
  const found = await readPart(proven, "logs", formatQuantity(number));
  if (found?.block.hash !== hash) {
    throw new NotProvenError("noProof");
  }
  const matching = joinLogs(scanLogs(found.items.text).filter(createLogMatcher(filter)));
  if (proven.context.memory?.hold(matching) === false) {
    throw overBudget();
  }
  return matching;
};

/** Returns the sealed blocks of a query. */
const rangeIn = (blocks: LogQuery["blocks"], heads: Heads): BlockRange => {
  if ("blockHash" in blocks) {
    const block = resolveBlock({ hash: blocks.blockHash, requireCanonical: false }, heads);
    if (block.kind !== "recent" && block.kind !== "final") {
      throw new NotProvenError("noProof");
    }
    return { from: block.number, to: block.number };
  }
  const { sealed } = resolveLogRange(blocks.fromBlock, blocks.toBlock, { heads });
  if (sealed === undefined) {
    throw new NotProvenError("pending");
  }
  return sealed;
};

/**
 * Logs of the newest 256 blocks: a bloom proves that a block has none, and the receipts root those that it has. Some blocks are read
 * at a time, and only the logs that match are held.
 */
const proveLogs = async (proven: ProvenCall): Promise<RpcResponse> => {
  const { chain, call, context } = proven;
  const [value] = parseParams(call.params, [required("filter", readAny)]) as readonly [CanonicalJson];
  const { filter, blocks } = readLogQuery(value, chain.logLimits);
  const headers = headersOf(proven, rangeIn(blocks, context.view.heads));
  const admitted = headers.filter(({ bloom }) => admitsLogs(bloom, filter));
  const last = headers.at(-1);
  if (last === undefined || admitted.length > MAX_BLOCKS_WITH_LOGS) {
    throw new NotProvenError("noProof");
  }
  const texts: Uint8Array[] = [];
  for (let at = 0; at < admitted.length; at += BLOCKS_AT_ONCE) {
    const some = admitted.slice(at, at + BLOCKS_AT_ONCE);
    texts.push(...(await Promise.all(some.map(({ block }) => logsOf(proven, block, filter)))));
  }
  return provenResponse(formatList(texts), last.block);
};

/** Returns the answer of a call, proven or not. */
export const answerOf = (proven: ProvenCall, prove: Prove): Awaitable<RpcResponse> => {
  if (typeof prove !== "object") {
    return proven.read(proven.call.method, proven.call.params);
  }
  if ("byProof" in prove) {
    return proveState(proven, prove.byProof);
  }
  return prove.byBlock === "logs" ? proveLogs(proven) : proveByBlock(proven, prove.byBlock);
};
