import { type Address, type Data, formatData, type Hash } from "../../../src/ethereum/hex.ts";
import type { GasRefund } from "../../../src/ethereum/postExec.ts";
import { BEACON_ROOTS, BLOCK_HASHES } from "../../../src/ethereum/systemContracts.ts";
import { encodeDeposit } from "../../../src/ethereum/transaction.ts";
import { RING_SLOTS } from "../../../src/evm/systemCalls.ts";
import { createRandom, pick } from "../../support/builders/randomValues.ts";
import type { Withdrawal } from "../chain/sealedBlock.ts";
import type { BlockDraft } from "./blockDraft.ts";
import type { StandInBlock, StandInChain, StandInTransaction } from "./standInChain.ts";
import { createAuthority, createDelegation, createTransaction } from "./standInTransactions.ts";
import { wordOf } from "./stateKeys.ts";

const address = (kind: number, index: number): Address =>
  `0x${kind.toString(16).padStart(4, "0")}${(index + 1).toString(16).padStart(36, "0")}`;
const addresses = (kind: number, count: number) => Array.from({ length: count }, (_, index) => address(kind, index));

/** EIP-7002. The end of a block resets its queue. */
const WITHDRAWAL_REQUESTS: Address = "0x00000961ef480eb55e80d19ad83579a64c007002";
const QUEUE_SLOTS = 4n;

const WALLETS = addresses(0xa11, 24);
const TOKENS = addresses(0x70c, 3);
/** Addresses at which contracts are created, destroyed and created again. */
const CREATED = addresses(0xc2, 10);
/** Contracts that create others. */
const FACTORIES = addresses(0xfac, 2);
const FEE_RECIPIENTS = addresses(0xfee, 2);
const AUTHORITIES = Array.from({ length: 4 }, (_, index) => createAuthority(index));
const authorityAddress = (index: number): Address => (AUTHORITIES[index]?.address ?? "0x").toLowerCase() as Address;

/** All accounts that the blocks write. */
export const STAND_IN_ACCOUNTS: readonly Address[] = [
  ...[...WALLETS, ...TOKENS, ...CREATED, ...FEE_RECIPIENTS],
  ...AUTHORITIES.map((_, index) => authorityAddress(index)),
];
export const SLOTS = 12;
/** Accounts with slots that the blocks write. */
export const STAND_IN_STORAGES: readonly Address[] = [...TOKENS, ...CREATED];
/** Contracts that blocks write outside their transactions. */
export const STAND_IN_SYSTEM: readonly Address[] = [BEACON_ROOTS, BLOCK_HASHES, WITHDRAWAL_REQUESTS];

/** Accounts of a block that geth's diffs leave out: one that was created, and one that only received value. */
export const leftOutAccounts = (height: number): readonly [created: Address, funded: Address] => [
  address(0x1ef, height),
  address(0x2ef, height),
];
/** Slots of the accounts that were created. */
export const LEFT_OUT_SLOTS = 2;

const RICH = 10n ** 24n;
const FEE = 21_000n * 8n;
const TIP = 21_000n;
const GWEI = 10n ** 9n;
const SECONDS_PER_BLOCK = 2n;
const GENESIS_SECONDS = 1_700_000_000n;
const MAX_TRANSACTIONS = 8;

const RUNTIMES: readonly Data[] = ["0x60015f55", "0x5f5f5260205ff3", "0x6001600155"];
const DELEGATION = "0xef0100";

/**
 * How traces show the gas that blocks of an OP stack give back (Lagoon). `settled`: each transaction has got it back, and the post-exec
 * transaction is listed. `unsettled`: neither. `none`: blocks of an OP stack give back nothing.
 */
export type TracedRefunds = "settled" | "unsettled" | "none";

const ATTRIBUTES_SENDER: Address = "0xdeaddeaddeaddeaddeaddeaddeaddeaddead0001";
const ATTRIBUTES: Address = "0x4200000000000000000000000000000000000015";
const BASE_FEE_VAULT: Address = "0x4200000000000000000000000000000000000019";
const FEE_PER_GAS = 8n;
const TIP_PER_GAS = 1n;
const MAX_REFUND = 20_000;

/** A transaction whose gas the block gives back in part. */
interface Refunded extends GasRefund {
  readonly sender: Address;
}

/**
 * Writes random blocks on a stand-in chain: every kind of write that a block can have. The same seed gives the same blocks. With
 * `refunds`, the chain is one of an OP stack: each block begins with a deposit, burns nothing, and gives back gas.
 */
export class RandomStateBlocks {
  readonly #chain: StandInChain;
  readonly #random: () => number;
  readonly #refunds: TracedRefunds | undefined;

  constructor(chain: StandInChain, seed: number, refunds?: TracedRefunds) {
    this.#chain = chain;
    this.#random = createRandom(seed);
    this.#refunds = refunds;
  }

  /** Seals the first block, in which the accounts have balances and the tokens code. */
  genesis(): StandInBlock {
    const draft = this.#chain.draft();
    for (const account of [...WALLETS, ...AUTHORITIES.map((_, index) => authorityAddress(index))]) {
      draft.setBalance(account, RICH);
    }
    for (const [index, contract] of [...TOKENS, ...FACTORIES, ...STAND_IN_SYSTEM].entries()) {
      draft.setNonce(contract, 1n);
      draft.setCode(contract, RUNTIMES[index % RUNTIMES.length] ?? "0x00");
    }
    draft.endPhase();
    draft.endPhase();
    return this.#seal(draft, [], [], pick(this.#random, FEE_RECIPIENTS));
  }

  /** Seals a block on the head. */
  async mine(): Promise<StandInBlock> {
    const draft = this.#chain.draft();
    const feeRecipient = pick(this.#random, FEE_RECIPIENTS);
    this.#writeStart(draft);
    const transactions = this.#refunds === undefined ? [] : [this.#deposit(draft)];
    const refunds: Refunded[] = [];
    const count = Math.floor(this.#random() * (MAX_TRANSACTIONS + 1));
    for (let index = 0; index < count; index++) {
      const refund = this.#drawRefund();
      const transaction = await this.#transact(draft, feeRecipient, refund);
      if (refund > 0n) {
        refunds.push({ index: transactions.length, gasRefund: refund, sender: transaction.sender });
      }
      transactions.push(transaction);
    }
    if (this.#refunds === "unsettled") {
      for (const { sender, gasRefund } of refunds) {
        this.#settle(draft, { sender, feeRecipient, refund: gasRefund });
      }
    }
    const withdrawals = this.#writeEnd(draft);
    return this.#seal(draft, transactions, withdrawals, feeRecipient, refunds);
  }

  #drawRefund(): bigint {
    return this.#refunds === undefined || this.#refunds === "none" || this.#below(2) === 0
      ? 0n
      : BigInt(1 + this.#below(MAX_REFUND));
  }

  /** The deposit that each block of an OP stack begins with. */
  #deposit(draft: BlockDraft): StandInTransaction {
    const number = wordOf(BigInt(this.#chain.height + 1));
    draft.setNonce(ATTRIBUTES_SENDER, draft.state.nonce(ATTRIBUTES_SENDER) + 1n);
    draft.setSlot(ATTRIBUTES, wordOf(0n), BigInt(number));
    draft.endPhase();
    const fields = {
      sourceHash: number,
      from: ATTRIBUTES_SENDER,
      to: ATTRIBUTES,
      mint: 0n,
      value: 0n,
      gas: 1_000_000n,
    };
    return {
      sender: ATTRIBUTES_SENDER,
      raw: encodeDeposit({ ...fields, isSystemTx: false, input: new Uint8Array(0) }),
    };
  }

  /** Gives gas back at its price (docs/reference/op-stack.md, Post-exec transactions). */
  #settle(
    draft: BlockDraft,
    {
      sender,
      feeRecipient,
      refund,
    }: { readonly sender: Address; readonly feeRecipient: Address; readonly refund: bigint },
  ): void {
    draft.addBalance(sender, refund * FEE_PER_GAS);
    draft.addBalance(feeRecipient, -refund * TIP_PER_GAS);
    draft.addBalance(BASE_FEE_VAULT, -refund * (FEE_PER_GAS - TIP_PER_GAS));
  }

  #seal(
    draft: BlockDraft,
    transactions: readonly StandInTransaction[],
    withdrawals: readonly Withdrawal[],
    feeRecipient: Address,
    refunds: readonly GasRefund[] = [],
  ): StandInBlock {
    const content = { transactions, withdrawals, feeRecipient, timestamp: this.#timestamp() };
    return this.#chain.seal(draft, {
      ...content,
      ...(this.#refunds !== undefined && { refunds, tracesPostExec: this.#refunds === "settled" }),
    });
  }

  #timestamp(): bigint {
    return GENESIS_SECONDS + BigInt(this.#chain.height + 1) * SECONDS_PER_BLOCK;
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  /** The system calls of EIP-4788 and EIP-2935. */
  #writeStart(draft: BlockDraft): void {
    const { chain, timestamp } = { chain: this.#chain, timestamp: this.#timestamp() };
    if (chain.fork !== "shanghai") {
      const slot = timestamp % RING_SLOTS;
      draft.setSlot(BEACON_ROOTS, wordOf(slot), timestamp);
      draft.setSlot(BEACON_ROOTS, wordOf(slot + RING_SLOTS), BigInt(this.#below(1_000_000)));
      draft.setSlot(BLOCK_HASHES, wordOf(BigInt(chain.height) % RING_SLOTS), BigInt(chain.head.hash));
    }
    draft.endPhase();
  }

  /** Withdrawals, and the queue of EIP-7002. */
  #writeEnd(draft: BlockDraft): readonly Withdrawal[] {
    const withdrawals = Array.from({ length: this.#below(3) }, () => ({
      address: pick(this.#random, WALLETS),
      amount: BigInt(1 + this.#below(1_000)),
    }));
    for (const { address: to, amount } of withdrawals) {
      draft.addBalance(to, amount * GWEI);
    }
    if (this.#chain.fork !== "shanghai") {
      for (let slot = 0n; slot < QUEUE_SLOTS; slot++) {
        draft.setSlot(WITHDRAWAL_REQUESTS, wordOf(slot), 0n);
      }
    }
    draft.endPhase();
    return withdrawals;
  }

  async #transact(draft: BlockDraft, feeRecipient: Address, refund: bigint): Promise<StandInTransaction> {
    const sender = pick(this.#random, WALLETS);
    const nonce = draft.state.nonce(sender);
    draft.touch(sender);
    draft.setNonce(sender, nonce + 1n);
    draft.addBalance(sender, -FEE);
    const transaction = await this.#writeTransaction(draft, sender, nonce);
    draft.addBalance(feeRecipient, TIP);
    if (this.#refunds !== undefined) {
      draft.addBalance(BASE_FEE_VAULT, FEE - TIP);
    }
    if (this.#refunds === "settled" && refund > 0n) {
      this.#settle(draft, { sender, feeRecipient, refund });
    }
    draft.endPhase();
    return transaction;
  }

  async #writeTransaction(draft: BlockDraft, sender: Address, nonce: bigint): Promise<StandInTransaction> {
    const contract = pick(this.#random, CREATED);
    const plain = { sender, nonce, to: contract, value: 0n };
    switch (this.#below(12)) {
      case 0:
      case 1:
        return createTransaction(this.#transfer(draft, sender, nonce));
      case 2:
      case 3:
      case 4:
        return createTransaction({ ...plain, to: this.#writeSlots(draft, pick(this.#random, TOKENS)) });
      case 5:
      case 6:
        this.#createOrWrite(draft, contract);
        return createTransaction(plain);
      case 7:
        this.#destroy(draft, contract, sender);
        return createTransaction(plain);
      case 8:
        if (this.#chain.fork === "shanghai") {
          return createTransaction(plain);
        }
        return this.#delegate(draft, plain);
      case 9:
        return createTransaction({ ...plain, value: this.#createLeftOut(draft, sender) });
      case 10:
        return createTransaction({ ...plain, value: this.#fundLeftOut(draft, sender) });
      default:
        // A request, or a transaction that failed.
        if (this.#chain.fork !== "shanghai" && this.#below(2) === 0) {
          draft.setSlot(WITHDRAWAL_REQUESTS, wordOf(BigInt(this.#below(Number(QUEUE_SLOTS)))), 1n);
        }
        return createTransaction(plain);
    }
  }

  #transfer(draft: BlockDraft, sender: Address, nonce: bigint) {
    const to = pick(this.#random, [...WALLETS, ...CREATED, ...FEE_RECIPIENTS]);
    const value = BigInt(this.#below(1_000_000));
    draft.addBalance(sender, -value);
    draft.addBalance(to, value);
    return { sender, nonce, to, value };
  }

  #writeSlots(draft: BlockDraft, contract: Address): Address {
    const count = 1 + this.#below(4);
    for (let index = 0; index < count; index++) {
      const isZero = this.#below(3) === 0;
      draft.setSlot(contract, this.#slot(), isZero ? 0n : BigInt(1 + this.#below(1_000_000)));
    }
    return contract;
  }

  #slot(): Hash {
    return wordOf(BigInt(this.#below(SLOTS)));
  }

  /** A code that no other block creates: its last bytes, which never run, are the number of the block. */
  #runtime(): Data {
    const number = (this.#chain.height + 1).toString(16).padStart(8, "0");
    return `${pick(this.#random, RUNTIMES)}00${number}`;
  }

  #createOrWrite(draft: BlockDraft, contract: Address): void {
    if (draft.state.code(contract) === "0x") {
      draft.setNonce(contract, 1n);
      draft.setCode(contract, this.#runtime());
    }
    this.#writeSlots(draft, contract);
  }

  /** A factory creates a contract, whose SELFDESTRUCT is reverted. Half of the contracts create another one. */
  #createLeftOut(draft: BlockDraft, sender: Address): bigint {
    const factory = pick(this.#random, FACTORIES);
    const [created] = leftOutAccounts(this.#chain.height + 1);
    const value = BigInt(this.#below(3));
    if (draft.state.nonce(created) > 0n) {
      return 0n;
    }
    draft.create(factory, created);
    draft.setCode(created, this.#runtime());
    for (let slot = 0; slot < LEFT_OUT_SLOTS; slot++) {
      draft.setSlot(created, wordOf(BigInt(slot)), BigInt(1 + this.#below(1_000)));
    }
    draft.addBalance(sender, -value);
    draft.addBalance(created, value);
    draft.runSelfDestruct(created);
    if (this.#below(2) === 0) {
      // The diff has one creation and one new account: it does not show that another account is between them.
      draft.create(created, address(0x3ef, this.#chain.height + 1));
    }
    return value;
  }

  /** The creation is reverted too, so that no nonce rises. Then the address receives value. */
  #fundLeftOut(draft: BlockDraft, sender: Address): bigint {
    const [, funded] = leftOutAccounts(this.#chain.height + 1);
    draft.destroyReverted(pick(this.#random, FACTORIES), funded);
    draft.addBalance(sender, -1n);
    draft.addBalance(funded, 1n);
    return 1n;
  }

  /** From Cancun on, only a contract of the same transaction is destroyed (EIP-6780). */
  #destroy(draft: BlockDraft, contract: Address, heir: Address): void {
    const exists = draft.state.code(contract) !== "0x";
    if (this.#chain.fork !== "shanghai" && exists) {
      const balance = draft.state.balance(contract);
      draft.setBalance(contract, 0n);
      draft.addBalance(heir, balance);
      return;
    }
    this.#createOrWrite(draft, contract);
    draft.addBalance(heir, draft.state.balance(contract));
    draft.destroy(contract);
  }

  async #delegate(
    draft: BlockDraft,
    plain: { readonly sender: Address; readonly nonce: bigint; readonly to: Address; readonly value: bigint },
  ): Promise<StandInTransaction> {
    const index = this.#below(AUTHORITIES.length);
    const authority = AUTHORITIES[index] ?? createAuthority(index);
    const account = authorityAddress(index);
    const nonce = draft.state.nonce(account);
    const isCleared = this.#below(2) === 0;
    const target = isCleared ? (formatData(new Uint8Array(20)) as Address) : pick(this.#random, TOKENS);
    draft.setNonce(account, nonce + 1n);
    draft.setCode(account, isCleared ? "0x" : `${DELEGATION}${target.slice(2)}`);
    return createDelegation(plain, authority, { target, nonce });
  }
}
