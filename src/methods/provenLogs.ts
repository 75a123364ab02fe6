import type { BlockId, HeaderFields, Heads } from "../core/heads.ts";
import { type BlockRange, resolveLogRange } from "../core/logRange.ts";
import { formatQuantity, type Hash, isData, parseData } from "../ethereum/hex.ts";
import { type LogFilter, matchesLog, parseLogQuery } from "../ethereum/logFilter.ts";
import { type Fields, isFields } from "../json/jsonBytes.ts";
import { admitsLogs } from "../logs/completeness.ts";
import { isCommitted, lowerHash } from "./anchors.ts";
import { resolveBlock } from "./blockParams.ts";
import { NotProvenError } from "./notProven.ts";
import { type CanonicalJson, parseParams, readAny, required } from "./paramSpec.ts";
import { type ProvenCall, type Prover, provenResponse, readReceipts, readRooted } from "./provenReads.ts";

/** The blocks whose receipts one query may need. */
const MAX_BLOCKS_WITH_LOGS = 64;

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

const topicsOf = ({ topics }: Fields): readonly Hash[] => (Array.isArray(topics) ? topics.map(lowerHash) : []);

/** The hash of a transaction is not under the receipts root. So it is taken from the block. */
const formatLog = (log: Fields, { block, header }: ProvenHeader, transactionHash: unknown): Fields => ({
  address: log.address,
  topics: log.topics,
  data: log.data,
  blockNumber: formatQuantity(block.number),
  transactionHash,
  transactionIndex: log.transactionIndex,
  blockHash: block.hash,
  blockTimestamp: header.timestamp,
  logIndex: log.logIndex,
  removed: false,
});

const logsOfReceipt = (receipt: unknown, filter: LogFilter): readonly Fields[] => {
  const logs: readonly unknown[] = isFields(receipt) && Array.isArray(receipt.logs) ? receipt.logs : [];
  return logs
    .filter(isFields)
    .filter((log) => matchesLog(filter, { address: String(log.address).toLowerCase(), topics: topicsOf(log) }));
};

/** Reads the receipts of a block, which its root verifies, and returns its logs. */
const logsOfBlock = async (proven: ProvenCall, header: ProvenHeader, filter: LogFilter): Promise<readonly Fields[]> => {
  const rooted = await readRooted(proven, "eth_getBlockByNumber", formatQuantity(header.block.number));
  if (rooted?.block.hash !== header.block.hash) {
    throw new NotProvenError("noProof");
  }
  const receipts = await readReceipts(proven, rooted);
  return receipts.flatMap((receipt, index) =>
    logsOfReceipt(receipt, filter).map((log) => formatLog(log, header, rooted.transactions[index]?.hash)),
  );
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
 * Logs of the newest 256 blocks: a bloom proves that a block has none, and the receipts root those that it has. The list is
 * computed from them.
 */
export const proveLogs: Prover = async (proven) => {
  const { range, filter } = rangeOf(proven);
  const headers = headersOf(proven, range);
  const admitted = headers.filter(({ bloom }) => admitsLogs(bloom, filter));
  const last = headers.at(-1);
  if (last === undefined || admitted.length > MAX_BLOCKS_WITH_LOGS) {
    throw new NotProvenError("noProof");
  }
  const logs = await Promise.all(admitted.map((header) => logsOfBlock(proven, header, filter)));
  return provenResponse(Buffer.from(JSON.stringify(logs.flat())), last.block);
};
