import { join } from "node:path";
import { type Abi, encodeFunctionData, type Hex, keccak256 } from "viem";
import { type Address, type Data, type Hash, parseData } from "../../../src/ethereum/hex.ts";
import { concatBytes } from "../../../src/ethereum/rlp.ts";
import { compile } from "../../support/builders/compile.ts";
import { createRandom } from "../../support/builders/randomValues.ts";
import type { BlockDraft } from "./blockDraft.ts";
import { formatReturnData } from "./standInCalls.ts";
import { StandInChain, type StandInTransaction } from "./standInChain.ts";
import { createTransaction } from "./standInTransactions.ts";
import { wordOf } from "./stateKeys.ts";
import { walletAddress } from "./walletKeys.ts";

export interface WalletWorldOptions {
  readonly wallets: number;
  readonly pools: number;
  readonly seed: number;
}

const TOKENS = 40;
/** Tokens whose balances a wallet shows. */
const SHOWN_TOKENS = 20;
const TOUCHED_WALLETS = 0.02;
const TOUCHED_POOLS = 1 / 3;
const RICH = 10n ** 24n;
const INNER_GAS = 100_000n;
const AMOUNTS = [1n, 5n, 10n, 50n, 100n].map((units) => units * 10n ** 15n);

const address = (kind: number, index: number): Address =>
  `0x${kind.toString(16).padStart(4, "0")}${(index + 1).toString(16).padStart(36, "0")}`;
const wallet = walletAddress;
const token = (index: number): Address => address(0x70c, index);
/** Returns the address of a pool. */
export const poolAddress = (index: number): Address => address(0x900, index);
const pool = poolAddress;
export const MULTICALL = address(0xca11, 0);
export const FEE_RECIPIENT = address(0xfee, 0);

/** Returns the slot of an owner's balance in a token. */
export const balanceSlot = (owner: Address): Hash =>
  keccak256(concatBytes([parseData(wordOf(BigInt(owner))), parseData(wordOf(0n))]));
const PAIR_TOKENS = [wordOf(0n), wordOf(1n)];
const RESERVES_SLOT = wordOf(2n);

const randomReserves = (random: () => number): bigint =>
  ((10n ** 20n + BigInt(Math.floor(random() * 1e15))) << 112n) | (10n ** 20n + BigInt(Math.floor(random() * 1e15)));

/** One transaction: a wallet sends a token to another one, or trades with a pool. */
export type Touched =
  | { readonly kind: "send"; readonly sender: number; readonly receiver: number }
  | { readonly kind: "trade"; readonly sender: number; readonly pool: number };

/** Draws the transactions of one block: half of the touched wallets send to the other half, and a third of the pools trade. */
export const drawTouched = (random: () => number, { wallets, pools }: WalletWorldOptions): readonly Touched[] => {
  const pick = (count: number): number => Math.floor(random() * count);
  const pairs = Math.max(1, (wallets * TOUCHED_WALLETS) / 2);
  const first = pick(pools);
  return [
    ...Array.from({ length: pairs }, () => ({ kind: "send", sender: pick(wallets), receiver: pick(wallets) }) as const),
    ...Array.from(
      { length: Math.round(pools * TOUCHED_POOLS) },
      (_, offset) => ({ kind: "trade", sender: pick(wallets), pool: (first + offset) % pools }) as const,
    ),
  ];
};

/** Wallets with balances of tokens, and pools, on a stand-in chain. Blocks write a share of both. */
export class WalletWorld {
  readonly #options: WalletWorldOptions;
  readonly #chain: StandInChain;
  readonly #random: () => number;
  readonly #startSeconds = Math.floor(Date.now() / 1_000);

  constructor(chain: StandInChain, options: WalletWorldOptions) {
    this.#chain = chain;
    this.#options = options;
    this.#random = createRandom(options.seed);
  }

  /** Seals the first block, with compiled contracts. */
  async genesis(): Promise<void> {
    const codes = await compileContracts();
    const draft = this.#chain.draft();
    const place = (at: Address, name: string): void => {
      draft.setNonce(at, 1n);
      draft.setCode(at, codes.get(name) ?? "0x");
    };
    place(MULTICALL, "Multicall");
    for (let index = 0; index < TOKENS; index++) {
      place(token(index), "Token");
    }
    for (let index = 0; index < this.#options.pools; index++) {
      place(pool(index), "Pair");
      for (const [side, slot] of PAIR_TOKENS.entries()) {
        draft.setSlot(pool(index), slot, BigInt(token((index + side) % TOKENS)));
      }
      draft.setSlot(pool(index), RESERVES_SLOT, randomReserves(this.#random));
    }
    for (let index = 0; index < this.#options.wallets; index++) {
      draft.setBalance(wallet(index), RICH);
      for (const shown of shownTokens(index)) {
        draft.setSlot(shown, balanceSlot(wallet(index)), BigInt(Math.floor(this.#random() * 1e15)));
      }
    }
    draft.endPhase();
    draft.endPhase();
    this.#seal(draft, []);
  }

  /** Seals a block. Half of the touched wallets send a token to the other half, and a third of the pools change. */
  mine(): void {
    const draft = this.#chain.draft();
    draft.endPhase();
    const transactions = drawTouched(this.#random, this.#options).map((touched) =>
      touched.kind === "send"
        ? this.#send(draft, touched.sender, touched.receiver)
        : this.#trade(draft, touched.sender, poolAddress(touched.pool)),
    );
    draft.endPhase();
    this.#seal(draft, transactions);
  }

  /** Seals a block in which each wallet sends a token to the next one. */
  mineTransfers(): void {
    const draft = this.#chain.draft();
    draft.endPhase();
    const { wallets } = this.#options;
    const transactions = Array.from({ length: wallets }, (_, index) => this.#send(draft, index, (index + 1) % wallets));
    draft.endPhase();
    this.#seal(draft, transactions);
  }

  #charge(draft: BlockDraft, sender: Address, to: Address): StandInTransaction {
    const nonce = draft.state.nonce(sender);
    draft.setNonce(sender, nonce + 1n);
    draft.addBalance(sender, -21_000n * 8n);
    draft.addBalance(FEE_RECIPIENT, 21_000n);
    return createTransaction({ sender, nonce, to, value: 0n });
  }

  #send(draft: BlockDraft, from: number, to: number): StandInTransaction {
    const [sent = token(0)] = shownTokens(from);
    const transaction = this.#charge(draft, wallet(from), sent);
    for (const [owner, amount] of [
      [wallet(from), 1n],
      [wallet(to), 2n],
    ] as const) {
      draft.setSlot(sent, balanceSlot(owner), BigInt(draft.state.slot(sent, balanceSlot(owner))) + amount);
    }
    draft.endPhase();
    return transaction;
  }

  #trade(draft: BlockDraft, sender: number, traded: Address): StandInTransaction {
    const transaction = this.#charge(draft, wallet(sender), traded);
    draft.setSlot(traded, RESERVES_SLOT, randomReserves(this.#random));
    draft.endPhase();
    return transaction;
  }

  #seal(draft: BlockDraft, transactions: readonly StandInTransaction[]): void {
    const timestamp = BigInt(this.#startSeconds + this.#chain.height + 1);
    this.#chain.seal(draft, { transactions, feeRecipient: FEE_RECIPIENT, timestamp });
  }
}

/** Returns the tokens whose balances a wallet shows. */
export const shownTokens = (index: number): readonly Address[] =>
  Array.from({ length: SHOWN_TOKENS }, (_, offset) => token((index + offset) % TOKENS));

const SOLIDITY = join(import.meta.dirname, "../../evm/Contracts.sol");
const CONTRACTS = ["Multicall", "Token", "Pair"];

/** Returns runtime codes by contract: those that the creation codes return. */
const compileContracts = async (): Promise<ReadonlyMap<string, Data>> => {
  const chain = new StandInChain("prague");
  const block = chain.mine();
  const compiled = compile(SOLIDITY, "prague");
  const codes = new Map<string, Data>();
  for (const name of CONTRACTS) {
    const creation = compiled.get(name)?.bytecode ?? "0x";
    const padding = name === "Pair" ? "0".repeat(128) : "";
    const result = await chain.execution.call(block, { data: `${creation}${padding}` as Hex });
    if (result.status !== "success") {
      throw new Error(`the creation of ${name} failed`);
    }
    codes.set(name, formatReturnData(result));
  }
  return codes;
};

const CALLS_ABI = [
  {
    type: "function",
    name: "tryAll",
    stateMutability: "view",
    inputs: [
      {
        name: "calls",
        type: "tuple[]",
        components: [
          { name: "to", type: "address" },
          { name: "gasLimit", type: "uint256" },
          { name: "data", type: "bytes" },
        ],
      },
    ],
    outputs: [],
  },
  {
    type: "function",
    name: "balanceOf",
    stateMutability: "view",
    inputs: [{ name: "", type: "address" }],
    outputs: [],
  },
  { type: "function", name: "quote", stateMutability: "view", inputs: [{ name: "", type: "uint256" }], outputs: [] },
] as const satisfies Abi;

export interface WalletCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** Creates the call of a wallet that shows its balances of 20 tokens. */
const balancesCall = (index: number): WalletCall => {
  const data = encodeFunctionData({ abi: CALLS_ABI, functionName: "balanceOf", args: [wallet(index)] });
  const calls = shownTokens(index).map((to) => ({ to, gasLimit: INNER_GAS, data }));
  const all = encodeFunctionData({ abi: CALLS_ABI, functionName: "tryAll", args: [calls] });
  return { method: "eth_call", params: [{ to: MULTICALL, data: all }, "latest"] };
};

/** Creates the calls of one refresh of a wallet. */
export const createWalletCalls = (index: number): ((asksNonce: boolean) => readonly WalletCall[]) => {
  const balances = balancesCall(index);
  return (asksNonce) => [
    { method: "eth_blockNumber", params: [] },
    { method: "eth_gasPrice", params: [] },
    { method: "eth_getBalance", params: [wallet(index), "latest"] },
    balances,
    ...(asksNonce ? [{ method: "eth_getTransactionCount", params: [wallet(index), "latest"] }] : []),
  ];
};

/** Creates a quote of a pool for one of a few amounts. */
export const createQuoteCall = (random: () => number, pools: number): WalletCall => {
  const amount = AMOUNTS[Math.floor(random() * AMOUNTS.length)] ?? 1n;
  const data = encodeFunctionData({ abi: CALLS_ABI, functionName: "quote", args: [amount] });
  return { method: "eth_call", params: [{ to: pool(Math.floor(random() * pools)), data }, "latest"] };
};
