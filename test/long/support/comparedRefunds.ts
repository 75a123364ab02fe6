import type { Address } from "../../../src/ethereum/hex.ts";
import type { RefundFeed, VersionFields } from "../../support/standIn/refundFeed.ts";

/** Returns the balance of the account in its input. */
const BALANCE_OF = "0x5f35315f5260205ff3";
const CONTRACT = `0x${"cc".repeat(20)}`;
/** State in these modes is promised to be true. */
const TRUE_MODES: ReadonlySet<string> = new Set(["live", "degraded"]);

export interface ComparedPending {
  readonly mode: string;
  /** Undefined: the mode promises nothing. */
  readonly isRight: boolean | undefined;
  /** What is wrong, as text. */
  readonly difference: object;
}

interface Answer {
  readonly result?: unknown;
  readonly error?: unknown;
}

interface ReceiptFields {
  readonly opGasRefund?: string | null;
}

/** Reads the pending block and an account in one view, and compares them with the message that the block shows. */
export const comparePending = async (
  url: string,
  sequencer: RefundFeed,
  account: Address,
): Promise<ComparedPending> => {
  const call = { to: CONTRACT, data: `0x${account.slice(2).padStart(64, "0")}` };
  const calls = [
    ["eth_getBlockByNumber", ["pending", false]],
    ["eth_getTransactionCount", [account, "pending"]],
    ["eth_getBalance", [account, "pending"]],
    ["eth_call", [call, "pending", { [CONTRACT]: { code: BALANCE_OF } }]],
    ["eth_getBlockReceipts", ["pending"]],
  ] as const;
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(calls.map(([method, params], id) => ({ jsonrpc: "2.0", id, method, params }))),
  });
  const mode = response.headers.get("x-forebay-pending") ?? "none";
  const answers = (await response.json()) as readonly Answer[];
  if (!TRUE_MODES.has(mode)) {
    return { mode, isRight: undefined, difference: {} };
  }
  const [block, nonce, balance, called, receipts] = answers.map(({ result }) => result);
  const version = block === undefined ? undefined : sequencer.versionOf(block as VersionFields);
  const right = version?.accounts.get(account);
  const expected = right && [right.nonce, right.balance, right.balance].map(String);
  const got = [nonce, balance, called].map((value) => BigInt(String(value ?? -1)).toString());
  const refunds = (receipts as readonly ReceiptFields[] | undefined)?.map(({ opGasRefund }) => opGasRefund ?? "0x0");
  const areRefundsRight = refunds?.every((refund, index) => BigInt(refund) === (version?.refunds.get(index) ?? 0n));
  return {
    mode,
    isRight: expected !== undefined && expected.join() === got.join() && areRefundsRight === true,
    difference: {
      mode,
      account,
      expected,
      got,
      refunds,
      rightRefunds: [...(version?.refunds ?? [])].map(String),
      block,
    },
  };
};
