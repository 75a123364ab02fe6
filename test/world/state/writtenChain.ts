import type { Address } from "../../../src/ethereum/hex.ts";
import { addressOf } from "../../support/builders/stateModel.ts";
import { StandInChain, type StandInFork } from "./standInChain.ts";

const FEE_RECIPIENT = addressOf(100);
const SECONDS_PER_BLOCK = 2n;

/** A chain whose blocks write what the test wants, before their transactions: access lists have these writes, and traces do not. */
export class WrittenChain {
  readonly chain: StandInChain;
  #seconds = 1_700_000_000n;

  constructor(fork: StandInFork, hasRoots = false) {
    this.chain = new StandInChain(fork, hasRoots);
  }

  /** Seals a block that sets these balances. */
  mine(balances: readonly (readonly [Address, bigint])[] = []): void {
    const draft = this.chain.draft();
    for (const [address, balance] of balances) {
      draft.setBalance(address, balance);
    }
    draft.endPhase();
    draft.endPhase();
    this.#seconds += SECONDS_PER_BLOCK;
    const timestamp = this.#seconds;
    this.chain.seal(draft, { transactions: [], withdrawals: [], feeRecipient: FEE_RECIPIENT, timestamp });
  }
}
