import type { BlockId, HeaderFields, Heads } from "../core/heads.ts";
import { type BlockRange, resolveLogRange } from "../core/logRange.ts";
import { formatQuantity, type Hash, isData, parseData } from "../ethereum/hex.ts";
import { type LogFilter, parseLogQuery } from "../ethereum/logFilter.ts";
import { overBudget } from "../jsonrpc/rpcError.ts";
import { admitsLogs } from "../logs/completeness.ts";
import { isCommitted, lowerHash } from "./anchors.ts";
import { resolveBlock } from "./blockParams.ts";
import { NotProvenError } from "./notProven.ts";
import { type CanonicalJson, parseParams, readAny, required } from "./paramSpec.ts";
import { matchesLogText } from "./provenLogText.ts";
import { type ProvenCall, type Prover, provenResponse, readPart } from "./provenReads.ts";

/** The blocks whose receipts one query may need. */
const MAX_BLOCKS_WITH_LOGS = 64;
/** The blocks whose receipts one query reads at a time. */
const BLOCKS_AT_ONCE = 8;

/** A block of the range whose header's hash was computed. */
interface ProvenHeader {
  readonly block: BlockId;
  readonly header: HeaderFields;
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
    const block = { number, hash: lowerHash(header.hash) };
    headers.push({ block, header, bloom: parseData(header.logsBloom) });
  }
  return headers;
};

const COMMA_TEXT = Buffer.from(",");
const OPEN = Buffer.from("[");
const CLOSE = Buffer.from("]");

/** Returns the texts of the logs of a block that match, with commas between them. The receipts root of the block verifies them. */
const logsOfBlock = async (proven: ProvenCall, { block }: ProvenHeader, filter: LogFilter): Promise<Uint8Array> => {
  const found = await readPart(proven, "logs", "eth_getBlockByNumber", formatQuantity(block.number));
  if (found?.block.hash !== block.hash) {
    throw new NotProvenError("noProof");
  }
  const { items } = found;
  const matching: Uint8Array[] = [];
  for (let index = 0; index < items.length; index++) {
    const text = items.at(index);
    if (text !== undefined && matchesLogText(filter, text)) {
      matching.push(...(matching.length === 0 ? [text] : [COMMA_TEXT, text]));
    }
  }
  return Buffer.concat(matching);
};

const rangeOf = ({ chain, context, call }: ProvenCall): { readonly range: BlockRange; readonly filter: LogFilter } => {
  const [value] = parseParams(call.params, [required("filter", readAny)]) as readonly [CanonicalJson];
  const { filter, blocks } = parseLogQuery(value, chain.logLimits);
  const { heads } = context.view;
  return { filter, range: "blockHash" in blocks ? rangeOfHash(blocks.blockHash, heads) : sealedRange(blocks, heads) };
};

const rangeOfHash = (hash: Hash, heads: Heads): BlockRange => {
  const block = resolveBlock({ hash, requireCanonical: false }, heads);
  if (block.kind !== "recent" && block.kind !== "final") {
    throw new NotProvenError("noProof");
  }
  return { from: block.number, to: block.number };
};

type Bounds = Parameters<typeof resolveLogRange>;

const sealedRange = (
  { fromBlock, toBlock }: { fromBlock: Bounds[0]; toBlock: Bounds[1] },
  heads: Heads,
): BlockRange => {
  const { sealed } = resolveLogRange(fromBlock, toBlock, { heads });
  if (sealed === undefined) {
    throw new NotProvenError("pending");
  }
  return sealed;
};

/**
 * Logs of the newest 256 blocks: a bloom proves that a block has none, and the receipts root those that it has. Some blocks are read
 * at a time, and only the logs that match are held.
 */
export const proveLogs: Prover = async (proven) => {
  const { range, filter } = rangeOf(proven);
  const headers = headersOf(proven, range);
  const admitted = headers.filter(({ bloom }) => admitsLogs(bloom, filter));
  const last = headers.at(-1);
  if (last === undefined || admitted.length > MAX_BLOCKS_WITH_LOGS) {
    throw new NotProvenError("noProof");
  }
  const texts: Uint8Array[] = [];
  for (let at = 0; at < admitted.length; at += BLOCKS_AT_ONCE) {
    const some = admitted.slice(at, at + BLOCKS_AT_ONCE);
    texts.push(...(await Promise.all(some.map((header) => heldLogsOfBlock(proven, header, filter)))));
  }
  return provenResponse(joinLogs(texts.filter(({ length }) => length > 0)), last.block);
};

/** Counts the logs of a block until the response is sent. */
const heldLogsOfBlock = async (proven: ProvenCall, header: ProvenHeader, filter: LogFilter): Promise<Uint8Array> => {
  const text = await logsOfBlock(proven, header, filter);
  if (proven.context.memory?.hold(text) === false) {
    throw overBudget();
  }
  return text;
};

const joinLogs = (texts: readonly Uint8Array[]): Uint8Array =>
  Buffer.concat([OPEN, ...texts.flatMap((text, index) => (index === 0 ? [text] : [COMMA_TEXT, text])), CLOSE]);
