import { encodeFunctionData } from "viem";
import type { StateChanges } from "../../../src/core/stateReader.ts";
import type { PendingEnvironment } from "../../../src/core/view.ts";
import { createBloom, orBloom } from "../../../src/ethereum/bloom.ts";
import { fixedForks } from "../../../src/ethereum/chainForks.ts";
import { type Data, formatData, formatQuantity, parseData, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { orderedTrieRoot } from "../../../src/ethereum/orderedTrie.ts";
import { parseTransaction } from "../../../src/ethereum/parseTransaction.ts";
import { encodeReceipt, type Receipt } from "../../../src/ethereum/receipt.ts";
import { rulesAt } from "../../../src/ethereum/rules.ts";
import { DEPOSIT_TYPE } from "../../../src/ethereum/transaction.ts";
import { createEngines } from "../../../src/evm/createEngines.ts";
import type { Engine } from "../../../src/evm/engine.ts";
import type { ExecutionState } from "../../../src/evm/executionState.ts";
import { startCalls } from "../../../src/evm/systemCalls.ts";
import { executeTransaction } from "../../../src/pending/executeTransaction.ts";
import { blockOf } from "../../../src/pending/messageSteps.ts";
import type { Flashblock, FlashblockBase } from "../../devnet/flashblock.ts";
import { BASE_FEE, GAS_LIMIT } from "../chain/sealedBlock.ts";
import { CodeHashes } from "./codeHashes.ts";
import { stateReaderAt } from "./standInCalls.ts";
import { CHAIN_ID, type StandInChain, type StandInTransaction } from "./standInChain.ts";
import { signWalletTransaction, walletAddress } from "./walletKeys.ts";
import { drawTouched, FEE_RECIPIENT, poolAddress, shownTokens, type WalletWorldOptions } from "./walletWorld.ts";

const ABI = [
  {
    type: "function",
    name: "transfer",
    stateMutability: "nonpayable",
    inputs: [
      { name: "to", type: "address" },
      { name: "value", type: "uint256" },
    ],
    outputs: [],
  },
  { type: "function", name: "sync", stateMutability: "nonpayable", inputs: [], outputs: [] },
] as const;
const SYNC = parseData(encodeFunctionData({ abi: ABI, functionName: "sync" }));

/** The block that the feed announces, executed as far as its messages go. */
interface OpenBlock {
  readonly environment: PendingEnvironment;
  readonly state: ExecutionState;
  readonly receipts: Receipt[];
  readonly transactions: StandInTransaction[];
  /** The transactions of the block that no message has. */
  waiting: StandInTransaction[];
  messages: number;
}

/** Seals blocks of signed transactions on a stand-in chain, and announces them in messages like a sequencer. */
export class FeedWorld {
  readonly #chain: StandInChain;
  readonly #engine: Engine;
  readonly #options: WalletWorldOptions;
  readonly #random: () => number;
  readonly #codeHashes = new CodeHashes();
  #open: OpenBlock | undefined;

  private constructor(chain: StandInChain, engine: Engine, options: WalletWorldOptions, random: () => number) {
    this.#chain = chain;
    this.#engine = engine;
    this.#options = options;
    this.#random = random;
  }

  /** The chain has the contracts and balances of a WalletWorld. */
  static async create(chain: StandInChain, options: WalletWorldOptions, random: () => number): Promise<FeedWorld> {
    const engines = await createEngines("fast");
    const engine = engines(rulesAt(fixedForks(CHAIN_ID, chain.fork), 1n, 1n));
    return new FeedWorld(chain, engine, options, random);
  }

  /** Begins the next block. Returns its first message, which has no transactions. */
  async begin(): Promise<Flashblock> {
    const { head: latest } = this.#chain;
    const environment: PendingEnvironment = {
      number: latest.header.number + 1n,
      timestamp: latest.header.timestamp + 1n,
      gasLimit: GAS_LIMIT,
      baseFeePerGas: BASE_FEE,
      feeRecipient: FEE_RECIPIENT,
      prevRandao: ZERO_HASH,
      parentHash: latest.hash,
      parentBeaconBlockRoot: ZERO_HASH,
      extraData: "0x",
    };
    const state = this.#engine.createState(this.#reader());
    const open = { environment, state, receipts: [], transactions: [], waiting: this.#sign(), messages: 0 };
    this.#open = open;
    for (const call of startCalls(this.#engine, environment)) {
      await this.#engine.systemCall(this.#context(open), ...call);
    }
    return this.#message(open, []);
  }

  /** Executes a share of the block's transactions that no message has. Returns their message. */
  async step(share: number): Promise<Flashblock> {
    const open = this.#opened();
    const count = Math.ceil(open.waiting.length * share);
    const next = open.waiting.slice(0, count);
    open.waiting = open.waiting.slice(count);
    for (const each of next) {
      const transaction = parseTransaction(each.raw);
      if (transaction.type === DEPOSIT_TYPE) {
        throw new Error("a wallet sends no deposit");
      }
      const gasUsed = open.receipts.at(-1)?.cumulativeGasUsed ?? 0n;
      const { receipt } = await executeTransaction(this.#context(open), { transaction, sender: each.sender }, gasUsed);
      open.receipts.push(receipt);
      open.transactions.push(each);
    }
    return this.#message(open, next);
  }

  /** Seals the block with the transactions of its messages. */
  seal(): void {
    const { environment, state, receipts, transactions } = this.#opened();
    const draft = this.#chain.draft();
    writeChanges(state.changes(), draft);
    for (let phase = 0; phase < transactions.length + 2; phase++) {
      draft.endPhase();
    }
    this.#chain.seal(draft, {
      ...{ transactions, withdrawals: [], feeRecipient: FEE_RECIPIENT, timestamp: environment.timestamp },
      execution: executionOf(receipts),
    });
    this.#open = undefined;
  }

  #opened(): OpenBlock {
    if (this.#open === undefined) {
      throw new Error("no block has begun");
    }
    return this.#open;
  }

  #reader() {
    return stateReaderAt(this.#chain, this.#chain.head.hash, this.#codeHashes);
  }

  #context({ environment, state }: OpenBlock) {
    return { engine: this.#engine, state, block: blockOf(environment, new Map(), this.#reader()) };
  }

  /** Signs the transactions of one block. */
  #sign(): StandInTransaction[] {
    const state = this.#chain.stateAt(this.#chain.head.hash);
    const nonces = new Map<number, bigint>();
    return drawTouched(this.#random, this.#options).map((touched) => {
      const { sender } = touched;
      const nonce = nonces.get(sender) ?? state.nonce(walletAddress(sender));
      nonces.set(sender, nonce + 1n);
      const [token = FEE_RECIPIENT] = shownTokens(sender);
      const call =
        touched.kind === "send"
          ? { to: token, data: parseData(transferTo(walletAddress(touched.receiver))) }
          : { to: poolAddress(touched.pool), data: SYNC };
      const raw = signWalletTransaction(sender, { chainId: CHAIN_ID, nonce, value: 0n, ...call });
      return { sender: walletAddress(sender), raw };
    });
  }

  #message(open: OpenBlock, added: readonly StandInTransaction[]): Flashblock {
    const { environment, receipts } = open;
    const { gasUsed, logsBloom, receiptsRoot } = executionOf(receipts);
    const index = open.messages++;
    return {
      payload_id: `0x03${environment.number.toString(16).padStart(14, "0")}`,
      index,
      ...(index === 0 ? { base: baseOf(environment) } : {}),
      diff: {
        state_root: ZERO_HASH,
        receipts_root: receiptsRoot,
        logs_bloom: formatData(logsBloom),
        gas_used: formatQuantity(gasUsed),
        block_hash: `0x${(environment.number * 1_000n + BigInt(index)).toString(16).padStart(64, "0")}`,
        transactions: added.map(({ raw }) => formatData(raw)),
        withdrawals: [],
        withdrawals_root: orderedTrieRoot([]),
        blob_gas_used: "0x0",
      },
      metadata: { block_number: Number(environment.number), access_list: null },
    };
  }
}

const transferTo = (to: Data) => encodeFunctionData({ abi: ABI, functionName: "transfer", args: [to, 1n] });

const baseOf = (environment: PendingEnvironment): FlashblockBase => ({
  parent_beacon_block_root: ZERO_HASH,
  parent_hash: environment.parentHash,
  fee_recipient: environment.feeRecipient,
  prev_randao: ZERO_HASH,
  block_number: formatQuantity(environment.number),
  gas_limit: formatQuantity(environment.gasLimit),
  timestamp: formatQuantity(environment.timestamp),
  extra_data: "0x",
  base_fee_per_gas: formatQuantity(BASE_FEE),
});

const executionOf = (receipts: readonly Receipt[]) => {
  const logsBloom = createBloom();
  for (const receipt of receipts) {
    orBloom(logsBloom, receipt.logsBloom);
  }
  return {
    gasUsed: receipts.at(-1)?.cumulativeGasUsed ?? 0n,
    logsBloom,
    receiptsRoot: orderedTrieRoot(receipts.map(encodeReceipt)),
  };
};

const writeChanges = (changes: StateChanges, draft: ReturnType<StandInChain["draft"]>): void => {
  for (const [address, { account, slots }] of changes) {
    draft.setBalance(address, account?.balance ?? 0n);
    draft.setNonce(address, account?.nonce ?? 0n);
    for (const [slot, value] of slots) {
      draft.setSlot(address, slot, value.length === 0 ? 0n : BigInt(formatData(value)));
    }
  }
};
