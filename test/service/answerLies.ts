import { type AnswerLie, type Change, type Fields, flip, flipStatus } from "../support/fakes/answerLie.ts";
import type { BlockSummary, ChainCall, SealedChain } from "../support/servers/sealedChain.ts";
import { changesInBlock } from "./changesInBlock.ts";
import { changesInProof } from "./changesInProof.ts";
import { changesInReceipt } from "./changesInReceipt.ts";

type ListChange = (result: readonly Fields[]) => unknown;

const ZEROS = `0x${"0".repeat(63)}1`;
const asFields = (value: unknown): Fields => value as Fields;
const asList = (value: unknown): readonly Fields[] => value as readonly Fields[];
const onFirst = (list: readonly Fields[], change: Change): unknown[] =>
  list.map((item, index) => (index === 0 ? change(item) : item));
/** Changes the first log of the first receipt that has logs. */
const withLog = (receipts: readonly Fields[], change: Change): unknown[] => {
  const at = receipts.findIndex(({ logs }) => asList(logs).length > 0);
  return receipts.map((receipt, index) =>
    index === at ? { ...receipt, logs: onFirst(asList(receipt.logs), change) } : receipt,
  );
};

/** Blocks are requested by number or by hash, so both forms get the wrong answer. */
export const answerLies = (chain: SealedChain, transferTopic: string): readonly AnswerLie[] => {
  const [final, otherFinal] = chain.final as readonly [BlockSummary, BlockSummary];
  const [recent, otherRecent] = chain.recent.slice(-2) as [BlockSummary, BlockSummary];
  const [transaction = "", otherTransaction = ""] = recent.transactions;
  const { token } = chain;
  const BLOCK = ["eth_getBlockByNumber", "eth_getBlockByHash"];
  const at = (block: BlockSummary, full: boolean): ChainCall => ({
    method: "eth_getBlockByNumber",
    params: [block.number, full],
  });
  const logsOf = (filter: Fields): ChainCall => ({ method: "eth_getLogs", params: [filter] });

  /** Whether the lie applies to a call. Reads of heads and of headers for verification have no transactions and stay correct. */
  const concerns = (methods: readonly string[], params: readonly unknown[], call: ChainCall): boolean =>
    !methods.includes("eth_getBlockByNumber") ||
    (params[1] === call.params[1] && [call.params[0], final.hash, recent.hash].includes(params[0]));

  const block = (name: string, call: ChainCall, check: string, change: Change, methods = BLOCK): AnswerLie => ({
    call,
    check,
    lie: {
      name,
      methods,
      result: (result, { params }) => (result && concerns(methods, params, call) ? change(asFields(result)) : result),
    },
  });
  const list = (name: string, call: ChainCall, check: string, change: ListChange): AnswerLie => ({
    call,
    check,
    lie: { name, methods: [call.method], result: (result) => (Array.isArray(result) ? change(result) : result) },
  });
  const one = (name: string, call: ChainCall, check: string, change: Change): AnswerLie =>
    block(name, call, check, change, [call.method]);
  /** Returns the response to another call instead. */
  const instead = (
    name: string,
    call: ChainCall,
    check: string,
    other: ChainCall,
    methods = [call.method],
  ): AnswerLie => ({
    call,
    check,
    lie: {
      name,
      methods,
      result: (result, { params }, truth) =>
        concerns(methods, params, call) ? truth(other.method, other.params) : result,
    },
  });
  const http = (
    name: string,
    call: ChainCall,
    check: string,
    change: (text: string) => string,
    status = 200,
  ): AnswerLie => ({
    call,
    check,
    lie: { name, methods: [call.method], http: ({ text }) => ({ status, text: change(text) }) },
  });

  const full = at(recent, true);
  const finalFull = at(final, true);
  const hashes = at(recent, false);
  const finalHashes = at(final, false);
  const transactionsOf =
    (change: ListChange): Change =>
    (fields) => ({
      ...fields,
      transactions: change(asList(fields.transactions)),
    });
  const receipts: ChainCall = { method: "eth_getBlockReceipts", params: [recent.number] };
  const finalReceipts: ChainCall = { method: "eth_getBlockReceipts", params: [final.number] };
  const byTransaction: ChainCall = { method: "eth_getTransactionByHash", params: [transaction] };
  const receipt: ChainCall = { method: "eth_getTransactionReceipt", params: [transaction] };
  const raw: ChainCall = { method: "eth_getRawTransactionByHash", params: [transaction] };
  const indexed: ChainCall = { method: "eth_getTransactionByBlockHashAndIndex", params: [recent.hash, "0x0"] };
  const code: ChainCall = { method: "eth_getCode", params: [token, final.number] };
  const ofToken = logsOf({ fromBlock: final.number, toBlock: otherFinal.number, address: token });
  const ofTopic = logsOf({ fromBlock: final.number, toBlock: otherFinal.number, topics: [transferTopic] });
  const range = logsOf({
    fromBlock: recent.number,
    toBlock: otherRecent.number,
  });

  return [
    block("a final block with another number", finalFull, "block", flip("number")),
    instead("a final block in place of another", finalHashes, "block", at(otherFinal, false), BLOCK),
    instead("a recent block in place of another", full, "block", at(otherRecent, true), BLOCK),
    instead(
      "a block by hash that has another hash",
      { method: "eth_getBlockByHash", params: [final.hash, true] },
      "block",
      at(otherFinal, true),
    ),
    block("a block with another hash", finalHashes, "header", flip("hash")),
    block("a block with another parent", hashes, "header", flip("parentHash")),
    block("a header with another state root", hashes, "header", flip("stateRoot")),
    block("a header with another time", finalHashes, "header", flip("timestamp")),
    block("a header with other gas", full, "header", flip("gasUsed")),
    block("a header with another bloom", hashes, "header", flip("logsBloom")),
    block("a header without a field", finalFull, "header", ({ mixHash: _, ...fields }) => fields),
    block("a header without requestsHash", finalHashes, "header", ({ requestsHash: _, ...fields }) => fields),
    block("a header with a base fee of null", hashes, "header", (fields) => ({ ...fields, baseFeePerGas: null })),
    block(
      "a block with a changed transaction",
      full,
      "transactions",
      transactionsOf((all) => onFirst(all, flip("value"))),
    ),
    block(
      "a block with a transaction of another hash",
      finalFull,
      "transactions",
      transactionsOf((all) => onFirst(all, flip("hash"))),
    ),
    ...["blockHash", "blockNumber", "transactionIndex"].map((field) =>
      block(
        `a block with a transaction of another ${field}`,
        full,
        "transactions",
        transactionsOf((all) => onFirst(all, flip(field))),
      ),
    ),
    block(
      "a block without one of its transactions",
      full,
      "transactions",
      transactionsOf((all) => all.slice(1)),
    ),
    block(
      "a block with its transactions in another order",
      finalFull,
      "transactions",
      transactionsOf((all) => all.toReversed()),
    ),
    block(
      "a block with one transaction twice",
      full,
      "transactions",
      transactionsOf(([first = {}, ...rest]) => [first, first, ...rest]),
    ),
    block(
      "a block without any transactions",
      hashes,
      "header",
      transactionsOf(() => []),
    ),
    {
      call: full,
      check: "transactions",
      lie: {
        name: "a block with the transactions of another",
        methods: BLOCK,
        result: async (result, { params }, truth) =>
          concerns(BLOCK, params, full)
            ? {
                ...asFields(result),
                transactions: asFields(await truth("eth_getBlockByHash", [otherRecent.hash, true])).transactions,
              }
            : result,
      },
    },
    instead("a transaction of another hash", byTransaction, "transaction", {
      ...byTransaction,
      params: [otherTransaction],
    }),
    one("a transaction with another value", byTransaction, "transactions", flip("value")),
    one("a transaction with other input", byTransaction, "transactions", (fields) => ({
      ...fields,
      input: `${fields.input}00`,
    })),
    instead("a transaction at an index of another block", indexed, "transaction", {
      ...indexed,
      params: [otherRecent.hash, "0x0"],
    }),
    instead("raw bytes of another transaction", raw, "transaction", { ...raw, params: [otherTransaction] }),
    instead("a receipt of another hash", receipt, "transaction", { ...receipt, params: [otherTransaction] }),
    one("a receipt with another bloom", receipt, "receipts", flip("logsBloom")),
    list("block receipts with another status", receipts, "receipts", (all) => onFirst(all, flipStatus)),
    list("block receipts with other gas", finalReceipts, "receipts", (all) => onFirst(all, flip("cumulativeGasUsed"))),
    list("block receipts with a log of another topic", finalReceipts, "receipts", (all) =>
      withLog(all, (log) => ({ ...log, topics: [ZEROS] })),
    ),
    list("block receipts with a log of other data", receipts, "receipts", (all) => withLog(all, flip("data"))),
    list("block receipts with another bloom", receipts, "receipts", (all) => onFirst(all, flip("logsBloom"))),
    list("block receipts without the last one", finalReceipts, "receipts", (all) => all.slice(0, -1)),
    list("no block receipts where there are some", finalReceipts, "receipts", () => []),
    instead("the receipts of another block", receipts, "block", { ...receipts, params: [otherRecent.number] }),
    list("logs of another address", ofToken, "logs", (all) => onFirst(all, flip("address"))),
    list("logs of another topic", ofTopic, "logs", (all) => onFirst(all, (log) => ({ ...log, topics: [ZEROS] }))),
    list("logs outside the range", ofToken, "logs", (all) => onFirst(all, (log) => ({ ...log, blockNumber: "0x7f" }))),
    list("a log that the bloom of its block does not admit", range, "logs", (all) => onFirst(all, flip("address"))),
    block("a block of hashes where whole transactions are requested", full, "block", (fields) => ({
      ...fields,
      transactions: asList(fields.transactions).map(({ hash }) => hash),
    })),
    block("a header with a later field and without an earlier one", finalHashes, "header", (fields) => ({
      ...fields,
      blockAccessListHash: null,
      slotNumber: "0x1",
    })),
    {
      ...block(
        "a header of unknown fields without requestsHash",
        finalHashes,
        "header",
        ({ requestsHash: _, ...rest }) => ({
          ...rest,
          newRoot: ZEROS,
        }),
      ),
      before: at(final, true),
    },
    ...changesInBlock(final),
    ...changesInReceipt(final, recent),
    ...changesInProof(chain),
    {
      call: code,
      check: "id",
      lie: { name: "an answer with another id", methods: [code.method], response: (each) => ({ ...each, id: 7 }) },
    },
    http("a result with HTTP status 500", code, "status", (text) => text, 500),
    http("a result that is no JSON", code, "json", (text) => text.replace('"result":"0x', '"result":0x')),
    http("a response that is cut off", code, "json", (text) => text.slice(0, -30)),
    http("a string with a control character", code, "json", (text) => text.replace('"result":"0x', '"result":"\n0x')),
    http(
      "an error object that is no JSON",
      code,
      "json",
      () => '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":oops}}',
    ),
  ];
};
