import { createServer } from "node:http";
import { formatHeader, hashHeader } from "../../../src/ethereum/blockHeader.ts";
import { bloomOfLogs, createBloom, orBloom } from "../../../src/ethereum/bloom.ts";
import { formatTransaction } from "../../../src/ethereum/formatTransaction.ts";
import { type Address, formatQuantity, type Hash, ZERO_ADDRESS, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { orderedTrieRoot } from "../../../src/ethereum/orderedTrie.ts";
import { parseTransaction } from "../../../src/ethereum/parseTransaction.ts";
import { encodeReceipt, formatReceipt } from "../../../src/ethereum/receipt.ts";
import { concatBytes, encodeBytes, encodeList, encodeNumber } from "../../../src/ethereum/rlp.ts";
import { listen } from "../../support/servers/ports.ts";

/**
 * A node whose blocks have 150 transactions with correct hashes and roots, and 150 receipts.
 * It answers each message with the number of its HTTP requests.
 */
const TRANSACTIONS = 150;
/** The one block with few transactions, of 1.8 kB with their hashes alone. */
const SMALL_BLOCK = 8;
const SMALL_TRANSACTIONS = 3;
/** The argument is the number of blocks. */
const BLOCKS = Number(process.argv[2] ?? 256);
const INPUT = new Uint8Array(196).fill(0xcd);
const RECIPIENT = new Uint8Array(20).fill(0xab);
const SENDER: Address = `0x${"a1".repeat(20)}`;
const WORD: Hash = `0x${"b2".repeat(32)}`;

const rawTransaction = (nonce: number): Uint8Array =>
  concatBytes([
    Uint8Array.of(2),
    encodeList([
      ...[encodeNumber(1), encodeNumber(nonce), encodeNumber(1_000_000), encodeNumber(2_000_000_000)],
      ...[encodeNumber(100_000), encodeBytes(RECIPIENT), encodeNumber(0), encodeBytes(INPUT), encodeList([])],
      ...[encodeNumber(1), encodeBytes(new Uint8Array(32).fill(7)), encodeBytes(new Uint8Array(32).fill(9))],
    ]),
  ]);

const logs = Array.from({ length: 2 }, () => ({ address: SENDER, topics: [WORD, WORD, WORD], data: WORD }));
const logsBloom = bloomOfLogs(logs);
const bloom = createBloom();
orBloom(bloom, logsBloom);
const receipts = Array.from({ length: TRANSACTIONS }, (_, index) => ({
  ...{ type: 2, status: true, logs, logsBloom },
  cumulativeGasUsed: 50_000n * BigInt(index + 1),
}));
const rootOf = (count: number): Hash => orderedTrieRoot(receipts.slice(0, count).map(encodeReceipt));
const receiptsRoots = { small: rootOf(SMALL_TRANSACTIONS), usual: rootOf(TRANSACTIONS) };

interface Texts {
  readonly hashes: string;
  readonly full: string;
  readonly receipts: string;
}

const createBlock = (number: number, parentHash: Hash): { readonly hash: Hash; readonly texts: Texts } => {
  const isSmall = number === SMALL_BLOCK;
  const receiptsRoot = isSmall ? receiptsRoots.small : receiptsRoots.usual;
  const transactions = Array.from({ length: isSmall ? SMALL_TRANSACTIONS : TRANSACTIONS }, (_, index) =>
    parseTransaction(rawTransaction(number * TRANSACTIONS + index)),
  );
  const header = {
    ...{ parentHash, miner: ZERO_ADDRESS, stateRoot: ZERO_HASH, receiptsRoot, logsBloom: bloom },
    transactionsRoot: orderedTrieRoot(transactions.map(({ raw }) => raw)),
    ...{
      number: BigInt(number),
      gasLimit: 30_000_000n,
      gasUsed: 7_500_000n,
      timestamp: 1_700_000_000n + BigInt(number),
    },
    ...({ extraData: "0x", mixHash: ZERO_HASH, baseFeePerGas: 7n } as const),
  };
  const hash = hashHeader(header);
  const place = { sender: SENDER, blockHash: hash, blockNumber: BigInt(number), baseFee: 7n };
  const rest = { ...formatHeader(header, hash), size: "0x8000", uncles: [] };
  const formatted = transactions.map((transaction, transactionIndex) =>
    formatTransaction(transaction, { ...place, transactionIndex }),
  );
  const formattedReceipts = transactions.map((transaction, index) => {
    const receipt = receipts[index] ?? receipts[0];
    if (receipt === undefined) {
      throw new Error("a block without receipts");
    }
    return formatReceipt(receipt, {
      ...{ ...place, transaction, transactionIndex: index, gasUsed: 50_000n, firstLogIndex: index * logs.length },
    });
  });
  return {
    hash,
    texts: {
      hashes: JSON.stringify({ ...rest, transactions: transactions.map((transaction) => transaction.hash) }),
      full: JSON.stringify({ ...rest, transactions: formatted }),
      receipts: JSON.stringify(formattedReceipts),
    },
  };
};

const byName = new Map<string, Texts>();
let parentHash: Hash = ZERO_HASH;
for (let number = 0; number < BLOCKS; number++) {
  const { hash, texts } = createBlock(number, parentHash);
  byName.set(formatQuantity(number), texts).set(hash, texts);
  parentHash = hash;
}
const latest = formatQuantity(BLOCKS - 1);
for (const tag of ["latest", "safe", "finalized"]) {
  byName.set(tag, byName.get(latest) ?? { hashes: "", full: "", receipts: "" });
}

interface Asked {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly [unknown, boolean?];
}

/** Calls, and methods that proxies read from a node before they use it. */
const CONSTANTS: Readonly<Record<string, string>> = {
  eth_call: '"0x00"',
  eth_chainId: '"0x1"',
  net_version: '"1"',
  eth_blockNumber: `"${latest}"`,
  eth_syncing: "false",
  net_peerCount: '"0x10"',
  web3_clientVersion: '"Geth/v1.17.0"',
};

const resultOf = ({ method, params: [block, isFull] }: Asked): string => {
  const texts = byName.get(
    typeof block === "object" && block !== null && "blockHash" in block ? String(block.blockHash) : String(block),
  );
  const constant = CONSTANTS[method];
  if (constant !== undefined) {
    return constant;
  }
  if (method === "eth_getBlockReceipts") {
    return texts?.receipts ?? "null";
  }
  if (method.startsWith("eth_getBlockBy")) {
    return (isFull ? texts?.full : texts?.hashes) ?? "null";
  }
  return '"0x0"';
};
const answerOne = (asked: Asked): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(asked.id)},"result":${resultOf(asked)}}`;

let requests = 0;
const server = createServer((request, response) => {
  requests += 1;
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk) => {
    body += chunk;
  });
  request.on("end", () => {
    const asked: Asked | Asked[] = JSON.parse(body);
    const text = Array.isArray(asked) ? `[${asked.map(answerOne).join()}]` : answerOne(asked);
    response.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
    response.end(text);
  });
});
server.keepAliveTimeout = 60_000;
process.send?.(await listen(server));
process.on("message", () => process.send?.(requests));
process.on("disconnect", () => process.exit());
