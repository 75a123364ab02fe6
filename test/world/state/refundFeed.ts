import type { PendingEnvironment } from "../../../src/core/view.ts";
import { createBloom } from "../../../src/ethereum/bloom.ts";
import { type Address, formatData, formatQuantity, type Hash, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { BASE_FEE_VAULT } from "../../../src/ethereum/opFees.ts";
import { orderedTrieRoot } from "../../../src/ethereum/orderedTrie.ts";
import { parseTransaction } from "../../../src/ethereum/parseTransaction.ts";
import type { GasRefund } from "../../../src/ethereum/postExec.ts";
import { encodeReceipt } from "../../../src/ethereum/receipt.ts";
import { encodeDeposit } from "../../../src/ethereum/transaction.ts";
import type { Flashblock } from "../../devnet/flashblock.ts";
import { BASE_FEE, GAS_LIMIT, postExecOf } from "../chain/sealedBlock.ts";
import type { BlockDraft } from "./blockDraft.ts";
import { CHAIN_ID, refundedReceipts, type StandInChain, type StandInTransaction } from "./standInChain.ts";
import { wordOf } from "./stateKeys.ts";
import { signWalletTransaction, walletAddress } from "./walletKeys.ts";
import { FEE_RECIPIENT } from "./walletWorld.ts";

const WALLETS = 12;
/** All accounts that the blocks write, but the sender of deposits. */
export const REFUND_ACCOUNTS: readonly Address[] = [
  ...Array.from({ length: WALLETS }, (_, index) => walletAddress(index)),
  ...[FEE_RECIPIENT, BASE_FEE_VAULT],
];
const ATTRIBUTES_SENDER: Address = "0xdeaddeaddeaddeaddeaddeaddeaddeaddead0001";
const ATTRIBUTES: Address = "0x4200000000000000000000000000000000000015";
const RICH = 10n ** 24n;
const GAS = 21_000n;
const TIP = 1n;
const PRICE = BASE_FEE + TIP;
const MAX_REFUND = 20_000;
const GENESIS_SECONDS = 1_700_000_000n;

/** The block as far as one message goes, with the values of its refunds. */
export interface RefundVersion {
  readonly number: bigint;
  readonly accounts: ReadonlyMap<Address, { readonly nonce: bigint; readonly balance: bigint }>;
  /** By the index of the transaction. */
  readonly refunds: ReadonlyMap<number, bigint>;
}

/** What a block object shows of its version. */
export interface VersionFields {
  readonly parentHash: Hash;
  readonly gasUsed: string;
  readonly transactions: readonly unknown[];
}

interface OpenBlock {
  readonly environment: PendingEnvironment;
  readonly draft: BlockDraft;
  readonly transactions: StandInTransaction[];
  refunds: readonly GasRefund[];
  messages: number;
}

const keyOf = ({ parentHash, gasUsed, transactions }: VersionFields): string =>
  [parentHash, gasUsed, transactions.length].join();

/**
 * Blocks of plain transfers on a stand-in chain of an OP stack, announced in messages. With `givesBack`, each message draws the
 * refunds of all transactions of its block anew, also if it has none of its own.
 */
export class RefundFeed {
  readonly #chain: StandInChain;
  readonly #random: () => number;
  readonly #givesBack: boolean;
  readonly #versions = new Map<string, RefundVersion>();
  #attempts = 0;
  #open: OpenBlock | undefined;

  constructor(chain: StandInChain, random: () => number, givesBack = true) {
    this.#chain = chain;
    this.#random = random;
    this.#givesBack = givesBack;
  }

  /** Seals the first block, in which the wallets have balances. */
  genesis(): void {
    const draft = this.#chain.draft();
    for (let index = 0; index < WALLETS; index++) {
      draft.setBalance(walletAddress(index), RICH);
    }
    draft.endPhase();
    draft.endPhase();
    const content = { transactions: [], withdrawals: [], feeRecipient: FEE_RECIPIENT, timestamp: GENESIS_SECONDS };
    this.#chain.seal(draft, { ...content, refunds: [] });
  }

  /** Begins the next block. Returns its first message, which has a deposit. */
  begin(): Flashblock {
    const { head: latest } = this.#chain;
    const draft = this.#chain.draft();
    draft.endPhase();
    const environment: PendingEnvironment = {
      ...{ number: latest.header.number + 1n, timestamp: latest.header.timestamp + 1n, parentHash: latest.hash },
      ...{ gasLimit: GAS_LIMIT, baseFeePerGas: BASE_FEE, feeRecipient: FEE_RECIPIENT, extraData: "0x" },
      ...{ prevRandao: ZERO_HASH, parentBeaconBlockRoot: ZERO_HASH },
    };
    const deposit = this.#deposit(draft, environment.number);
    this.#attempts++;
    this.#open = { environment, draft, transactions: [deposit], refunds: [], messages: 0 };
    return this.#message([deposit]);
  }

  /** Adds transfers. Returns their message. */
  step(transfers: number): Flashblock {
    const open = this.#opened();
    const added = Array.from({ length: transfers }, () => this.#transfer(open.draft));
    open.transactions.push(...added);
    open.refunds = this.#drawRefunds(open.transactions.length);
    return this.#message(added);
  }

  /** Seals the block with the refunds of its newest message. */
  seal(): void {
    const { draft, transactions, refunds, environment } = this.#opened();
    for (const [address, amount] of this.#settlement()) {
      draft.addBalance(address, amount);
    }
    draft.endPhase();
    const { timestamp, feeRecipient } = environment;
    const { json } = this.#chain.seal(draft, { transactions, withdrawals: [], feeRecipient, timestamp, refunds });
    this.#keep(Object(json));
    this.#open = undefined;
  }

  /** Returns the version that a block object shows. */
  versionOf(block: VersionFields): RefundVersion | undefined {
    return this.#versions.get(keyOf(block));
  }

  #opened(): OpenBlock {
    if (this.#open === undefined) {
      throw new Error("no block has begun");
    }
    return this.#open;
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #deposit(draft: BlockDraft, number: bigint): StandInTransaction {
    draft.setNonce(ATTRIBUTES_SENDER, draft.state.nonce(ATTRIBUTES_SENDER) + 1n);
    draft.endPhase();
    const fields = { sourceHash: wordOf(number), from: ATTRIBUTES_SENDER, to: ATTRIBUTES, mint: 0n, value: 0n };
    const raw = encodeDeposit({ ...fields, gas: 1_000_000n, isSystemTx: false, input: new Uint8Array(0) });
    return { sender: ATTRIBUTES_SENDER, raw };
  }

  #transfer(draft: BlockDraft): StandInTransaction {
    const index = this.#below(WALLETS);
    const [sender, to] = [walletAddress(index), walletAddress(this.#below(WALLETS))];
    const [nonce, value] = [draft.state.nonce(sender), BigInt(this.#below(1_000_000))];
    draft.setNonce(sender, nonce + 1n);
    draft.addBalance(sender, -value - GAS * PRICE);
    draft.addBalance(to, value);
    draft.addBalance(FEE_RECIPIENT, GAS * TIP);
    draft.addBalance(BASE_FEE_VAULT, GAS * BASE_FEE);
    draft.endPhase();
    const fields = { chainId: CHAIN_ID, nonce, to, value, data: new Uint8Array(0) };
    return { sender, raw: signWalletTransaction(index, fields) };
  }

  /** The deposit, which is first, gets nothing back. */
  #drawRefunds(transactions: number): readonly GasRefund[] {
    const drawn = Array.from({ length: transactions - 1 }, (_, position) => ({
      index: position + 1,
      gasRefund: this.#givesBack && this.#below(2) === 0 ? BigInt(1 + this.#below(MAX_REFUND)) : 0n,
    }));
    return drawn.filter(({ gasRefund }) => gasRefund > 0n);
  }

  /** What the refunds add to balances (docs/reference/op-stack.md, Post-exec transactions). */
  #settlement(): ReadonlyMap<Address, bigint> {
    const { transactions, refunds } = this.#opened();
    const amounts = new Map<Address, bigint>();
    const add = (address: Address, amount: bigint): void => {
      amounts.set(address, (amounts.get(address) ?? 0n) + amount);
    };
    for (const { index, gasRefund } of refunds) {
      add(transactions[index]?.sender ?? FEE_RECIPIENT, gasRefund * PRICE);
      add(FEE_RECIPIENT, -gasRefund * TIP);
      add(BASE_FEE_VAULT, -gasRefund * BASE_FEE);
    }
    return amounts;
  }

  /** Records the values of the open block under what a block object shows of it. */
  #keep(shown: VersionFields, amounts: ReadonlyMap<Address, bigint> = new Map()): void {
    const { draft, refunds, environment } = this.#opened();
    this.#versions.set(keyOf(shown), {
      number: environment.number,
      accounts: new Map(
        REFUND_ACCOUNTS.map((address) => [
          address,
          { nonce: draft.state.nonce(address), balance: draft.state.balance(address) + (amounts.get(address) ?? 0n) },
        ]),
      ),
      refunds: new Map(refunds.map(({ index, gasRefund }) => [index, gasRefund])),
    });
  }

  #message(added: readonly StandInTransaction[]): Flashblock {
    const open = this.#opened();
    const { environment, transactions, refunds } = open;
    const { number, parentHash } = environment;
    const parsed = transactions.map(({ raw }) => parseTransaction(raw));
    const receipts = refundedReceipts(parsed, number, refunds);
    const gasUsed = receipts.at(-1)?.cumulativeGasUsed ?? 0n;
    const postExec = postExecOf(number, refunds);
    this.#keep({ parentHash, transactions, gasUsed: formatQuantity(gasUsed) }, this.#settlement());
    const index = open.messages++;
    const base = {
      ...{ parent_beacon_block_root: ZERO_HASH, parent_hash: parentHash, fee_recipient: environment.feeRecipient },
      ...{ prev_randao: ZERO_HASH, block_number: formatQuantity(number), gas_limit: formatQuantity(GAS_LIMIT) },
      ...{ timestamp: formatQuantity(environment.timestamp), extra_data: environment.extraData },
      base_fee_per_gas: formatQuantity(BASE_FEE),
    } as const;
    const diff = {
      // Subblocks have neither roots nor hashes.
      ...{ state_root: ZERO_HASH, block_hash: ZERO_HASH, withdrawals_root: ZERO_HASH },
      receipts_root: orderedTrieRoot(receipts.map(encodeReceipt)),
      logs_bloom: formatData(createBloom()),
      gas_used: formatQuantity(gasUsed),
      transactions: added.map(({ raw }) => formatData(raw)),
      withdrawals: [],
      blob_gas_used: "0x0",
      ...(postExec && { post_exec_tx: formatData(postExec.raw) }),
    } as const;
    return {
      payload_id: `0x04${this.#attempts.toString(16).padStart(14, "0")}`,
      index,
      ...(index === 0 && { base }),
      diff,
      metadata: { block_number: Number(number) },
    };
  }
}
