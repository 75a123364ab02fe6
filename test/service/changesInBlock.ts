import { type AnswerLie, type Fields, flip } from "../support/fakes/answerLie.ts";
import type { BlockSummary, ChainCall } from "../support/servers/sealedChain.ts";

/** Changes the first item whose field is not null. */
const flipFirst =
  (field: string, isConcerned: (item: Fields) => boolean = () => true) =>
  (list: readonly Fields[]): unknown[] => {
    const at = list.findIndex((item) => item[field] !== null && isConcerned(item));
    return list.map((item, index) => (index === at ? flip(field)(item) : item));
  };

/** A topic that no event of the chain has. */
const NO_TOPIC = `0x${"0".repeat(63)}1`;

const hasNoLogs = ({ logs }: Fields): boolean => Array.isArray(logs) && logs.length === 0;

/** Wrong fields of transactions and receipts that no hash of their own response covers. The block was read before. */
export const changesInBlock = (block: BlockSummary): readonly AnswerLie[] => {
  const before: ChainCall = { method: "eth_getBlockByNumber", params: [block.number, true] };
  const [creation = "", transfer = ""] = block.transactions;
  const list = (name: string, change: (items: readonly Fields[]) => unknown): AnswerLie => ({
    ...{ before, check: "receipts", call: { method: "eth_getBlockReceipts", params: [block.number] } },
    lie: {
      name: `block receipts with ${name}`,
      methods: ["eth_getBlockReceipts"],
      result: (result) => (Array.isArray(result) ? change(result) : result),
    },
  });
  const one = (name: string, method: string, hash: string, field: string): AnswerLie => ({
    ...{ before, check: "transaction", call: { method, params: [hash] } },
    lie: { name, methods: [method], result: (result) => flip(field)(result as Fields) },
  });
  const receipt = (name: string, hash: string, field: string): AnswerLie =>
    one(`a receipt with ${name}`, "eth_getTransactionReceipt", hash, field);
  const transaction = (name: string, field: string): AnswerLie =>
    one(`a transaction by hash with ${name}`, "eth_getTransactionByHash", transfer, field);

  return [
    list("another recipient", flipFirst("to")),
    list("another contract", flipFirst("contractAddress")),
    list(
      "another creator",
      flipFirst("from", ({ to }) => to === null),
    ),
    list("a contract where none was created", (items) =>
      items.map((item) => (item.to === null ? item : { ...item, contractAddress: item.to })),
    ),
    list("another transaction that has no logs", flipFirst("transactionHash", hasNoLogs)),
    receipt("another recipient", transfer, "to"),
    receipt("another contract", creation, "contractAddress"),
    receipt("another index", transfer, "transactionIndex"),
    receipt("another block number", transfer, "blockNumber"),
    {
      call: { method: "eth_getLogs", params: [{ blockHash: block.hash }] },
      check: "logs",
      lie: {
        name: "logs of another topic without the receipts of their block",
        methods: ["eth_getLogs", "eth_getBlockReceipts"],
        result: (result, { method }) =>
          method === "eth_getLogs" && Array.isArray(result)
            ? result.map((log) => ({ ...log, topics: [NO_TOPIC] }))
            : null,
      },
    },
    transaction("another index", "transactionIndex"),
    transaction("another block number", "blockNumber"),
  ];
};
