import { type Data, type Hash, parseData } from "../../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../../src/ethereum/keccak.ts";
import type { AccountDiff, AccountSnapshot, CallFrame, PhaseDiff } from "./blockDraft.ts";
import { ZERO_WORD } from "./stateKeys.ts";

/** How a client's tracer shows a cleared delegation and accounts that did not exist. See docs/reference/state.md. */
export type TraceDialect = "geth" | "anvil";

export interface TraceForm {
  readonly dialect: TraceDialect;
  /** The request leaves out codes. geth returns their hashes, also otherwise. anvil returns nothing of them then. */
  readonly disableCode: boolean;
}

const ZERO_ADDRESS = `0x${"00".repeat(20)}`;

const quantity = (value: bigint): string => `0x${value.toString(16)}`;

const storageOf = (entries: readonly (readonly [Hash, Hash])[]) => {
  const written = entries.filter(([, value]) => value !== ZERO_WORD);
  return written.length === 0 ? {} : { storage: Object.fromEntries(written) };
};

const isChanged = ({ before, after, slots }: AccountDiff): boolean =>
  before.balance !== after.balance ||
  before.nonce !== after.nonce ||
  before.code !== after.code ||
  slots.some(([, from, to]) => from !== to);

const formatCode = (code: Data, { dialect, disableCode }: TraceForm) => ({
  ...(disableCode ? {} : { code }),
  ...(dialect === "geth" ? { codeHash: keccak256Hex(parseData(code)) } : {}),
});

const formatPre = ({ before, slots }: AccountDiff, form: TraceForm) => ({
  balance: quantity(before.balance),
  ...(before.nonce === 0n ? {} : { nonce: Number(before.nonce) }),
  ...(before.code === "0x" ? {} : formatCode(before.code, form)),
  ...storageOf(slots.filter(([, from, to]) => from !== to).map(([slot, from]) => [slot, from])),
});

/** anvil omits the code of an account whose delegation was cleared. */
const formatPostCode = (before: AccountSnapshot, after: AccountSnapshot, form: TraceForm) =>
  before.code === after.code || (form.dialect === "anvil" && after.code === "0x") ? {} : formatCode(after.code, form);

const formatPost = ({ before, after, slots }: AccountDiff, form: TraceForm) => ({
  ...(before.balance === after.balance ? {} : { balance: quantity(after.balance) }),
  ...(before.nonce === after.nonce ? {} : { nonce: Number(after.nonce) }),
  ...formatPostCode(before, after, form),
  ...storageOf(slots.filter(([, from, to]) => from !== to).map(([slot, , to]) => [slot, to])),
});

/** geth shows a contract that ran SELFDESTRUCT in `pre` only, and leaves it out if it was new. */
const isInPost = ({ isDestructed, after }: AccountDiff, { dialect }: TraceForm): boolean =>
  after.exists && !(isDestructed && dialect === "geth");

/** Formats one transaction as prestateTracer does in diff mode. */
const formatTransactionDiff = (diffs: PhaseDiff, form: TraceForm) => {
  const changed = diffs.filter((diff) => isChanged(diff) || (diff.isDestructed && form.dialect === "geth"));
  const pre = changed.filter(({ before }) => before.exists || form.dialect === "anvil");
  const post = changed.filter((diff) => isInPost(diff, form));
  return {
    pre: Object.fromEntries(pre.map((diff) => [diff.address, formatPre(diff, form)])),
    post: Object.fromEntries(post.map((diff) => [diff.address, formatPost(diff, form)])),
  };
};

/** Formats the result of callTracer. It has only the frames that name accounts. */
export const formatCallTrace = (
  transactions: readonly (readonly CallFrame[])[],
  hashes: readonly Hash[],
): readonly unknown[] =>
  transactions.map((calls, index) => ({
    txHash: hashes[index],
    result: { type: "CALL", from: ZERO_ADDRESS, to: ZERO_ADDRESS, calls },
  }));

/** Formats the result of debug_traceBlockByHash. `transactions`: the diffs of the transactions alone, in order. */
export const formatDiffTrace = (transactions: readonly PhaseDiff[], hashes: readonly Hash[], form: TraceForm) =>
  transactions.map((diffs, index) => ({ txHash: hashes[index], result: formatTransactionDiff(diffs, form) }));
