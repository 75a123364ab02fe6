import { mnemonicToAccount } from "viem/accounts";
import { type Address, formatData, formatQuantity, type Hex, parseData, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { parseTransaction } from "../../../src/ethereum/parseTransaction.ts";
import { type Flashblock, formatMetadata } from "../../devnet/flashblock.ts";
import { EMITTER, STORE_GAS } from "./emitter.ts";
import { BASE_FEE, GAS_LIMIT } from "./sealedBlock.ts";
import { createTruthBlock, FEE_RECIPIENT, receiptsOf, type TruthBlock, type TruthTransaction } from "./truthBlock.ts";
import { TruthState } from "./truthState.ts";

const TIP = 1n;
const REFUND = 1_000n;
const SECONDS_PER_BLOCK = 1n;
/** `METADATA=e` is a feed without receipts: forebay knows logs only after the execution. */
const GENERATION = process.env.METADATA === "e" ? "e" : "b";
const ACCOUNTS = Array.from({ length: 6 }, (_, addressIndex) =>
  mnemonicToAccount("test test test test test test test test test test test junk", { addressIndex }),
);

export const SENDERS: readonly Address[] = ACCOUNTS.map(({ address }) => address.toLowerCase() as Address);

/** Makes the words and the extra data of one chain unique. */
export interface TruthSeed {
  readonly chainId: number;
  readonly seed: number;
  count: number;
}

/** A word without a zero byte. */
const nextWord = (source: TruthSeed): Hex => {
  const bytes = parseData(keccak256Hex(Buffer.from(`${source.chainId}:${source.seed}:${source.count++}`)));
  return formatData(bytes.map((byte) => byte || 1));
};

/** A block on `parent` that grows by one message after the other. */
export class OpenBlock {
  readonly parent: TruthBlock;
  readonly #source: TruthSeed;
  readonly #payloadId: Hex;
  readonly #givesBack: boolean;
  readonly #transactions: TruthTransaction[] = [];
  #state: TruthState;
  #messages = 0;

  /** `givesBack`: the block ends with a transaction that gives back gas to some of its transactions (Lagoon). */
  constructor(parent: TruthBlock, source: TruthSeed, givesBack = false) {
    this.#givesBack = givesBack;
    this.parent = parent;
    this.#source = source;
    this.#state = parent.state;
    this.#payloadId = nextWord(source).slice(0, 18) as Hex;
  }

  /** Adds transactions, and returns the block so far. */
  async grow(transactions: number): Promise<TruthBlock> {
    for (let count = 0; count < transactions; count++) {
      await this.#add();
    }
    return this.#create();
  }

  /** Creates the feed's message for the newest transactions. `block` is the block with them. */
  message(block: TruthBlock, transactions: number): Flashblock {
    const { header } = block;
    const index = this.#messages++;
    const added = this.#transactions.slice(this.#transactions.length - transactions);
    const base = {
      parent_beacon_block_root: ZERO_HASH,
      parent_hash: header.parentHash,
      fee_recipient: FEE_RECIPIENT,
      prev_randao: ZERO_HASH,
      block_number: formatQuantity(block.number),
      gas_limit: formatQuantity(GAS_LIMIT),
      timestamp: formatQuantity(header.timestamp),
      extra_data: header.extraData,
      base_fee_per_gas: formatQuantity(BASE_FEE),
    };
    const first = this.#transactions.length - transactions;
    const all = receiptsOf(this.#transactions);
    const receipts = new Map(
      added.flatMap((each, position) => {
        const receipt = all[first + position];
        return receipt === undefined ? [] : [[each.transaction.hash, receipt] as const];
      }),
    );
    const source = { blockNumber: block.number, receipts, balances: new Map(), previous: "0-0" };
    return {
      payload_id: this.#payloadId,
      index,
      ...(index === 0 ? { base } : {}),
      diff: {
        state_root: header.stateRoot,
        receipts_root: header.receiptsRoot,
        logs_bloom: formatData(header.logsBloom),
        gas_used: formatQuantity(header.gasUsed),
        block_hash: block.hash,
        transactions: added.map(({ transaction }) => formatData(transaction.raw)),
        withdrawals: [],
        withdrawals_root: header.withdrawalsRoot ?? ZERO_HASH,
        blob_gas_used: "0x0",
      },
      metadata: formatMetadata(GENERATION, source),
    };
  }

  async #add(): Promise<void> {
    const account = ACCOUNTS[this.#source.count % ACCOUNTS.length] ?? ACCOUNTS[0];
    if (account === undefined) {
      throw new Error("no accounts");
    }
    const sender = account.address.toLowerCase() as Address;
    const word = nextWord(this.#source);
    const nonce = Number(this.#state.nonce(sender));
    const fees = { maxFeePerGas: 100n, maxPriorityFeePerGas: TIP, gas: 100_000n };
    const content = { to: EMITTER, data: word, value: 0n, nonce, chainId: this.#source.chainId };
    const raw = await account.signTransaction({ type: "eip1559", ...fees, ...content });
    const refund = this.#givesBack ? BigInt(this.#source.count % 3) * REFUND : 0n;
    this.#transactions.push({ transaction: parseTransaction(parseData(raw)), sender, word, refund });
    const gas = STORE_GAS - refund;
    const change = { sender, feeRecipient: FEE_RECIPIENT, fee: gas * (BASE_FEE + TIP), tip: gas * TIP, word };
    this.#state = this.#state.after(change);
  }

  #create(): TruthBlock {
    return createTruthBlock({
      parent: this.parent,
      timestamp: this.parent.header.timestamp + SECONDS_PER_BLOCK,
      extraData: this.#payloadId,
      transactions: [...this.#transactions],
      state: this.#state,
    });
  }
}

/** Creates the first block. Each sender has the same balance. */
export const createGenesis = (source: TruthSeed, timestamp: bigint): TruthBlock =>
  createTruthBlock({
    parent: undefined,
    timestamp,
    extraData: keccak256Hex(Buffer.from(`genesis ${source.chainId} ${source.seed}`)),
    transactions: [],
    state: new TruthState(ZERO_HASH, new Map(SENDERS.map((sender) => [sender, 10n ** 20n]))),
  });
