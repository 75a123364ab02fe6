import type { Heads } from "../../../src/core/heads.ts";
import { type ForkingNode, recipient, sender, token } from "../fakes/forkingNode.ts";
import type { ChainCall } from "../servers/sealedChain.ts";
import { resultText } from "./rpc.ts";

const SLOT = `0x${"00".repeat(32)}`;
const BALANCE_OF = `0x70a08231${recipient.slice(2).padStart(64, "0")}`;

/** The reads at a block, with `at` as their block parameter. */
const READS: readonly ((at: string) => ChainCall)[] = [
  (at) => ({ method: "eth_getBalance", params: [recipient, at] }),
  (at) => ({ method: "eth_getTransactionCount", params: [sender, at] }),
  (at) => ({ method: "eth_getStorageAt", params: [token, SLOT, at] }),
  (at) => ({ method: "eth_call", params: [{ from: sender, to: token, data: BALANCE_OF }, at] }),
  (at) => ({ method: "eth_getProof", params: [recipient, [], at] }),
  (at) => ({ method: "eth_getBlockByNumber", params: [at, false] }),
  (at) => ({ method: "eth_getBlockByNumber", params: [at, true] }),
  (at) => ({ method: "eth_getBlockTransactionCountByNumber", params: [at] }),
  (at) => ({ method: "eth_getTransactionByBlockNumberAndIndex", params: [at, "0x1"] }),
  (at) => ({ method: "eth_getBlockReceipts", params: [at] }),
  (at) => ({ method: "eth_feeHistory", params: ["0x1", at, []] }),
];

/** A call whose result depends on the canonical chain. */
export type ViewQuestion =
  | { readonly kind: "head" }
  /** `read` is an index of `READS`. Without a number, the block parameter is `latest`. */
  | { readonly kind: "block"; readonly read: number; readonly number: bigint | undefined }
  | { readonly kind: "logs"; readonly from: bigint; readonly to: bigint }
  | {
      readonly kind: "transaction";
      readonly method: "eth_getTransactionByHash" | "eth_getTransactionReceipt";
      readonly hash: string;
    };

export const READ_KINDS = READS.length;

const quantity = (number: bigint): string => `0x${number.toString(16)}`;

export const callOf = (question: ViewQuestion): ChainCall => {
  switch (question.kind) {
    case "head":
      return { method: "eth_blockNumber", params: [] };
    case "block": {
      const { read, number } = question;
      return (
        READS[read % READS.length]?.(number === undefined ? "latest" : quantity(number)) ?? callOf({ kind: "head" })
      );
    }
    case "logs":
      return {
        method: "eth_getLogs",
        params: [{ address: token, fromBlock: quantity(question.from), toBlock: quantity(question.to) }],
      };
    case "transaction":
      return { method: question.method, params: [question.hash] };
  }
};

interface Recorded {
  readonly number: bigint;
  readonly parentHash: string;
  /** In the order of `READS`. */
  readonly reads: readonly string[];
  readonly logs: readonly string[];
}

interface RecordedTransaction {
  readonly number: bigint;
  readonly blockHash: string;
  readonly answers: Readonly<Record<string, string>>;
}

/** The correct result in a view whose head is below the block: the client has the number from an earlier view. */
export const ABOVE_HEAD = "above the head";
const ABOVE_HEAD_ERRORS = [/^header not found$/, /^block range extends beyond current head block/];

/** The errors while the nodes that answer are on another branch than the view (docs/answers.md, Blocks and pending). */
const OTHER_BRANCH_ERRORS: Readonly<Partial<Record<ViewQuestion["kind"], RegExp>>> = {
  transaction:
    /^header not found: \S+ answers (of a block that is not served|eth_getTransaction\w+ of another branch)$/,
  logs: /^(Logs of a block that is not canonical|The node has left the branch of its logs)$/,
};

/** Whether an error says that the nodes are on another branch than the view. */
export const isOtherBranchError = ({ kind }: ViewQuestion, message: string): boolean =>
  OTHER_BRANCH_ERRORS[kind]?.test(message) ?? false;

/** Whether an error says that the block is above the head. */
export const isAboveHeadError = (message: string): boolean => ABOVE_HEAD_ERRORS.some((text) => text.test(message));

/** Results that nodes returned for each block while it was canonical, by block hash. */
export interface BlockTruth {
  /** Reads every new block of the node. The node must not change during the read. */
  record(node: ForkingNode): Promise<void>;
  /** Transactions of the newest recorded blocks, on all branches. */
  readonly transactions: readonly string[];
  /** Returns the correct result in a view: ABOVE_HEAD above its head, undefined if the block was not recorded. */
  answer(question: ViewQuestion, heads: Heads): string | undefined;
  /** Whether a head is the view's, or above it on its branch. */
  hasView(head: string, heads: Heads): boolean;
  /** Whether another branch has what the view does not: the transaction alone, or other blocks in the range of the logs. */
  isOnOtherBranch(question: ViewQuestion, heads: Heads): boolean;
}

const MAX_TRANSACTIONS = 60;

/** Whether a transaction's block is canonical. Blocks below the ring were final when the ring was created. */
const isCanonical = ({ number, blockHash }: RecordedTransaction, heads: Heads): boolean => {
  const known = heads.at(number);
  return known === undefined ? number < heads.oldest : known.hash === blockHash;
};

/** Formats logs for comparison, without the timestamp, which forebay adds and nodes may omit. */
const comparable = (logs: readonly Readonly<Record<string, unknown>>[]): string[] =>
  logs.map(({ blockTimestamp: _, ...log }) => JSON.stringify(Object.entries(log).toSorted()));

export const comparableLogs = (text: string): string => JSON.stringify(comparable(JSON.parse(text)));

/** Formats a fee history for comparison, without the predicted fee of the next block. */
export const comparableFees = (text: string): string => {
  const { baseFeePerGas, baseFeePerBlobGas, ...rest } = JSON.parse(text);
  return JSON.stringify({ ...rest, baseFeePerGas: baseFeePerGas.slice(0, -1) });
};

export const createBlockTruth = (): BlockTruth => {
  const blocks = new Map<string, Recorded>();
  const byTransaction = new Map<string, RecordedTransaction[]>();
  const newest: string[] = [];

  const ask = async (node: ForkingNode, { method, params }: ChainCall): Promise<string> =>
    resultText(await node.anvil.post(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })));

  const recordBlock = async (node: ForkingNode, number: bigint, hash: string, block: string) => {
    const { parentHash, transactions }: { parentHash: string; transactions: readonly string[] } = JSON.parse(block);
    const reads = await Promise.all(
      READS.map(async (read) => {
        const call = read(quantity(number));
        const text = await ask(node, call);
        return call.method === "eth_feeHistory" ? comparableFees(text) : text;
      }),
    );
    const logs = await ask(node, callOf({ kind: "logs", from: number, to: number }));
    blocks.set(hash, { number, parentHash, reads, logs: comparable(JSON.parse(logs)) });
    for (const transaction of transactions) {
      const methods = ["eth_getTransactionByHash", "eth_getTransactionReceipt"];
      const texts = await Promise.all(methods.map((method) => ask(node, { method, params: [transaction] })));
      const answers = Object.fromEntries(methods.map((method, index) => [method, texts[index] ?? ""]));
      const places = byTransaction.get(transaction) ?? [];
      byTransaction.set(transaction, [...places, { number, blockHash: hash, answers }]);
      newest.push(transaction);
    }
    newest.splice(0, newest.length - MAX_TRANSACTIONS);
  };

  const answerLogs = (from: bigint, to: bigint, heads: Heads): string | undefined => {
    const all: string[] = [];
    for (let number = from; number <= to; number++) {
      const block = blocks.get(heads.at(number)?.hash ?? "");
      if (block === undefined) {
        return undefined;
      }
      all.push(...block.logs);
    }
    return JSON.stringify(all);
  };

  const placesOf = (question: ViewQuestion): readonly RecordedTransaction[] =>
    question.kind === "transaction" ? (byTransaction.get(question.hash) ?? []) : [];

  return {
    transactions: newest,
    hasView: (head, { latest }) => {
      let hash = head;
      for (let block = blocks.get(hash); block && block.number > latest.number; block = blocks.get(hash)) {
        hash = block.parentHash;
      }
      return hash === latest.hash;
    },
    isOnOtherBranch: (question, heads) => {
      if (question.kind === "logs") {
        const others = [...blocks].filter(([hash, { number }]) => heads.at(number)?.hash !== hash);
        return others.some(([, { number }]) => number >= question.from && number <= question.to);
      }
      const places = placesOf(question);
      return places.length > 0 && !places.some((place) => isCanonical(place, heads));
    },
    record: async (node) => {
      let { number, hash }: { number: string; hash: string } = await node.latest();
      while (!blocks.has(hash) && BigInt(number) >= 0n) {
        const text = await ask(node, { method: "eth_getBlockByNumber", params: [number, false] });
        await recordBlock(node, BigInt(number), hash, text);
        if (BigInt(number) === 0n) {
          return;
        }
        number = `0x${(BigInt(number) - 1n).toString(16)}`;
        hash = blocks.get(hash)?.parentHash ?? "";
      }
    },
    answer: (question, heads) => {
      switch (question.kind) {
        case "head":
          return JSON.stringify(quantity(heads.latest.number));
        case "block":
          if (question.number !== undefined && question.number > heads.latest.number) {
            return ABOVE_HEAD;
          }
          return blocks.get(heads.at(question.number ?? heads.latest.number)?.hash ?? "")?.reads[
            question.read % READS.length
          ];
        case "logs":
          return question.to > heads.latest.number ? ABOVE_HEAD : answerLogs(question.from, question.to, heads);
        case "transaction": {
          const place = placesOf(question).find((each) => isCanonical(each, heads));
          return place?.answers[question.method] ?? "null";
        }
      }
    },
  };
};
