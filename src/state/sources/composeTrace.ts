import { type Address, ZERO_HASH } from "../../ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../ethereum/keccak.ts";
import { BASE_FEE_VAULT, L1_FEE_VAULT, OPERATOR_FEE_VAULT } from "../../ethereum/opFees.ts";
import type { BlobSchedule } from "../../ethereum/rules.ts";
import { SYSTEM_CONTRACTS } from "../../ethereum/systemContracts.ts";
import { isDelegation } from "../../evm/checks/transactionChecks.ts";
import { type BlockWrites, type MutableAccounts, type MutableWrites, writesOf } from "../writeSet.ts";
import { hasAllCreations, mayLeaveOutAccounts } from "./leftOutAccounts.ts";
import type { TracedBlock, TracedTransaction } from "./tracedBlock.ts";
import type { TransactionCalls } from "./traceTexts.ts";
import { type DiffAccount, type TransactionDiff, UntracedTransaction } from "./traceTexts.ts";

export interface TraceParts {
  readonly diffs: readonly TransactionDiff[];
  readonly block: TracedBlock;
  /** Undefined: they are not needed, or were not asked yet. */
  readonly calls: readonly TransactionCalls[] | undefined;
  /** System contracts of the chain besides those that all chains share. */
  readonly contracts: readonly Address[];
  /** Undefined if it is not known. */
  readonly blobs: BlobSchedule | undefined;
}

/** The diffs may leave out accounts, and the calls that name these accounts are missing. */
export class UnlistedAccounts extends Error {
  override readonly name = "UnlistedAccounts";
}

const NOTHING = new Uint8Array(0);

/** Any slot may have been written. */
const forgetSlots = (writes: MutableWrites): void => {
  writes.otherSlots = "unknown";
  writes.slots.clear();
};

const forgetCode = (writes: MutableWrites): void => {
  writes.code = "unknown";
  delete writes.codeHash;
};

/** Anything of the account may have been written. */
const forgetAccount = (writes: MutableWrites): void => {
  writes.balance = "unknown";
  writes.nonce = "unknown";
  forgetCode(writes);
  forgetSlots(writes);
};

const addCode = (writes: MutableWrites, { code, codeHash }: DiffAccount): void => {
  if (code !== undefined) {
    writes.code = code;
    writes.codeHash = keccak256Hex(code);
  } else if (codeHash === EMPTY_CODE_HASH || codeHash === ZERO_HASH) {
    // geth gives zero for an account that does not exist.
    writes.code = NOTHING;
    writes.codeHash = EMPTY_CODE_HASH;
  } else if (codeHash !== undefined) {
    writes.code = "unknown";
    writes.codeHash = codeHash;
  }
};

const addPost = (writes: MutableWrites, pre: DiffAccount | undefined, post: DiffAccount): void => {
  if (post.balance !== undefined) {
    writes.balance = post.balance;
  }
  if (post.nonce !== undefined) {
    writes.nonce = post.nonce;
  }
  addCode(writes, post);
  // A tracer omits slots that became zero.
  for (const slot of pre?.slots.keys() ?? []) {
    writes.slots.set(slot, NOTHING);
  }
  for (const [slot, value] of post.slots) {
    writes.slots.set(slot, value);
  }
};

/** Collects the writes of transaction after transaction. */
class TraceComposition {
  readonly accounts: MutableAccounts = new Map();
  /** Accounts whose delegation may have been cleared: some tracers leave that out (EIP-7702). */
  readonly #delegating = new Set<Address>();

  add(
    { pre, post }: TransactionDiff,
    { authorizations }: TracedTransaction,
    calls: TransactionCalls | undefined,
  ): void {
    for (const [address, before] of pre) {
      if (before.code !== undefined && isDelegation(before.code)) {
        this.#delegating.add(address);
      }
      // The account was destroyed, or the tracer only saw a SELFDESTRUCT that had no effect or was reverted.
      if (!post.has(address)) {
        forgetAccount(writesOf(this.accounts, address));
      }
    }
    for (const [address, after] of post) {
      addPost(writesOf(this.accounts, address), pre.get(address), after);
    }
    for (const address of calls?.accounts ?? []) {
      if (!post.has(address)) {
        forgetAccount(writesOf(this.accounts, address));
      }
    }
    for (const { authority } of authorizations) {
      this.#delegating.add(authority);
    }
  }

  /** Marks keys as unknown that the block writes outside its transactions, even if the trace has a value. */
  finish({ feeRecipient, withdrawn, paysMiner, postExec }: TracedBlock, contracts: readonly Address[]): void {
    for (const address of this.#delegating) {
      forgetCode(writesOf(this.accounts, address));
    }
    // A tracer that executes transactions one by one does not pay gas back.
    for (const address of [...withdrawn, ...(postExec?.senders ?? [])]) {
      writesOf(this.accounts, address).balance = "unknown";
    }
    const recipient = writesOf(this.accounts, feeRecipient);
    if (paysMiner || postExec !== undefined || recipient.balance === undefined) {
      recipient.balance = "unknown";
    }
    markSystemWrites(this.accounts, contracts);
  }
}

const checkItem = (diff: TransactionDiff | undefined, { hash, sender, nextNonce }: TracedTransaction): void => {
  const nonce = diff?.post.get(sender)?.nonce;
  const hasNonce = nextNonce === undefined || (nonce !== undefined && nonce >= nextNonce);
  if (diff?.transactionHash !== hash || !hasNonce) {
    throw new UntracedTransaction("the trace does not have all transactions of the block");
  }
};

const checkCalls = ({ diffs, block, calls, blobs }: TraceParts): void => {
  const isListed =
    calls === undefined
      ? !mayLeaveOutAccounts(diffs, block, blobs)
      : calls.length === diffs.length &&
        block.transactions.every((transaction, index) => {
          const [diff, own] = [diffs[index], calls[index]];
          return diff !== undefined && own !== undefined && hasAllCreations(diff, transaction, own);
        });
  if (!isListed) {
    throw new UnlistedAccounts("the trace may leave out accounts");
  }
};

/**
 * Composes the writes of a block from the diffs of its transactions (docs/reference/state.md, Diff traces).
 * Throws UntracedTransaction if a transaction is missing, and UnlistedAccounts if the calls are missing.
 */
export const composeTrace = (parts: TraceParts): BlockWrites => {
  const { diffs, block, calls, contracts } = parts;
  if (diffs.length !== block.transactions.length || block.paysOmmers) {
    throw new UntracedTransaction("the trace does not have all writes of the block");
  }
  const composition = new TraceComposition();
  for (const [index, transaction] of block.transactions.entries()) {
    const diff = diffs[index];
    checkItem(diff, transaction);
    if (diff !== undefined) {
      composition.add(diff, transaction, calls?.[index]);
    }
  }
  checkCalls(parts);
  composition.finish(block, contracts);
  return composition.accounts;
};

/** Accounts of the OP stack that collect fees. Other chains have nothing at these addresses. */
const FEE_VAULTS: readonly Address[] = [
  "0x4200000000000000000000000000000000000011",
  BASE_FEE_VAULT,
  L1_FEE_VAULT,
  OPERATOR_FEE_VAULT,
];

/**
 * Marks as unknown what every block may write after or between its transactions.
 * `contracts`: system contracts of the chain besides those that all chains share.
 */
const markSystemWrites = (accounts: MutableAccounts, contracts: readonly Address[]): void => {
  for (const contract of [...SYSTEM_CONTRACTS, ...contracts]) {
    forgetSlots(writesOf(accounts, contract));
  }
  for (const vault of FEE_VAULTS) {
    writesOf(accounts, vault).balance = "unknown";
  }
};
