import { formatQuantity } from "../../../src/ethereum/hex.ts";
import type { ChainCall } from "../../support/servers/sealedChain.ts";
import { EMITTER } from "../chain/emitter.ts";
import { SENDERS } from "../chain/openBlock.ts";
import { isAncestor } from "../chain/sealedBlock.ts";
import { FEE_RECIPIENT, type TruthBlock } from "../chain/truthBlock.ts";
import type { TruthChain } from "../chain/truthChain.ts";

/** A call whose result depends on the canonical chain. */
export interface ViewQuestion extends ChainCall {
  readonly kind: "head" | "block" | "logs" | "transaction";
  /** The first and the last block that it names. */
  readonly from?: number;
  readonly to?: number;
}

/** Maximum depth of calls and reorganisations below the head. */
const MAX_DEPTH = 20;
const SLOT = `0x${"00".repeat(32)}`;

/** The reads at a block, with `at` as their block parameter. */
const READS: readonly ((at: string) => ChainCall)[] = [
  (at) => ({ method: "eth_getBalance", params: [FEE_RECIPIENT, at] }),
  (at) => ({ method: "eth_getTransactionCount", params: [SENDERS[0], at] }),
  (at) => ({ method: "eth_getStorageAt", params: [EMITTER, SLOT, at] }),
  (at) => ({ method: "eth_call", params: [{ from: SENDERS[0], to: EMITTER }, at] }),
  (at) => ({ method: "eth_getProof", params: [EMITTER, [SLOT], at] }),
  (at) => ({ method: "eth_getBlockByNumber", params: [at, false] }),
  (at) => ({ method: "eth_getBlockByNumber", params: [at, true] }),
  (at) => ({ method: "eth_getBlockTransactionCountByNumber", params: [at] }),
  (at) => ({ method: "eth_getTransactionByBlockNumberAndIndex", params: [at, "0x1"] }),
  (at) => ({ method: "eth_getBlockReceipts", params: [at] }),
  (at) => ({ method: "eth_feeHistory", params: ["0x1", at, []] }),
];

/** Creates a random question near a head. */
export const nextViewQuestion = (chain: TruthChain, head: number, random: (below: number) => number): ViewQuestion => {
  const number = head - random(MAX_DEPTH);
  const hash = chain.transactions[random(chain.transactions.length)];
  const read = READS[random(READS.length)] ?? (() => ({ method: "eth_blockNumber", params: [] }));
  switch (random(10)) {
    case 0:
      return { kind: "head", method: "eth_blockNumber", params: [] };
    case 1: {
      const from = number - random(MAX_DEPTH);
      const filter = { address: EMITTER, fromBlock: formatQuantity(from), toBlock: formatQuantity(number) };
      return { kind: "logs", method: "eth_getLogs", params: [filter], from, to: number };
    }
    case 2:
    case 3:
      return { kind: "transaction", method: "eth_getTransactionReceipt", params: [hash] };
    case 4:
      return { kind: "transaction", method: "eth_getTransactionByHash", params: [hash] };
    case 5:
    case 6:
      return { kind: "block", ...read("latest") };
    default:
      return { kind: "block", ...read(formatQuantity(number)), from: number, to: number };
  }
};

/** The errors while the nodes that answer are on another branch than the view (docs/answers.md, Blocks and pending). */
const OTHER_BRANCH_ERRORS: Readonly<Partial<Record<ViewQuestion["kind"], RegExp>>> = {
  transaction:
    /^header not found: \S+ answers (of a block that is not served|eth_getTransaction\w+ of another branch)$/,
  logs: /^(Logs of a block that is not canonical|The node has left the branch of its logs)$/,
};

/** Whether an error says that the nodes are on another branch than the view. */
export const isOtherBranchError = ({ kind }: ViewQuestion, message: string): boolean =>
  OTHER_BRANCH_ERRORS[kind]?.test(message) ?? false;

/** Whether another branch has what the view does not: the transaction alone, or other blocks in the range of the logs. */
export const isOnOtherBranch = (
  chain: TruthChain,
  { kind, params: [hash], from = 0, to = 0 }: ViewQuestion,
  head: TruthBlock,
): boolean => {
  if (kind === "logs") {
    return chain.blocksBetween(from, to).some((block) => !isAncestor(block, head));
  }
  const places = kind === "transaction" ? chain.holding(hash) : [];
  return places.length > 0 && !places.some((block) => isAncestor(block, head));
};
