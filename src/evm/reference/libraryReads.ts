import type { Common } from "@ethereumjs/common";
import type { EVMResult, Message } from "@ethereumjs/evm";
import type { Address as AddressBytes } from "@ethereumjs/util";
import { type Address, formatData } from "../../ethereum/hex.ts";
import type { Authorization } from "../../ethereum/transaction.ts";
import { isDelegation } from "../checks/transactionChecks.ts";
import type { TransactionContext } from "../engine.ts";
import type { ReadRecorder } from "../readRecorder.ts";
import { recoverAuthority } from "../senders/recoverAddress.ts";
import type { InstrumentedEvm } from "./instrumentedEvm.ts";
import { recordStep, type StepContext } from "./stepReads.ts";

/** Where a delegation names its account, after its prefix (EIP-7702). */
const DELEGATED_ADDRESS_AT = 3;

const hexOf = (address: AddressBytes): Address => formatData(address.bytes);

/** Records the values that a transaction reads, from the steps and messages of the EVM of ethereumjs. */
export class LibraryReads {
  readonly #state: TransactionContext["state"];
  readonly #common: Common;
  readonly #reads: ReadRecorder;
  readonly #steps: StepContext;

  constructor({ state, block }: TransactionContext, common: Common, reads: ReadRecorder) {
    this.#state = state;
    this.#common = common;
    this.#reads = reads;
    this.#steps = { reads, block, hasEip161: common.gteHardfork("spuriousDragon") };
  }

  /** Listens until the returned function is called. */
  listen(evm: InstrumentedEvm): () => void {
    const { events } = evm;
    evm.onStep = (step) => recordStep(step, this.#steps);
    const onMessage = (message: Message) => this.#message(message);
    const onResult = ({ createdAddress }: EVMResult) => this.#created(createdAddress);
    events.on("beforeMessage", onMessage).on("afterMessage", onResult);
    return () => {
      evm.onStep = undefined;
      events.off("beforeMessage", onMessage).off("afterMessage", onResult);
    };
  }

  /** The EVM of ethereumjs applies authorizations before its first event. An account is empty as in EIP-161. */
  authorizations(list: readonly Authorization[]): void {
    for (const authorization of list) {
      const authority = recoverAuthority(authorization, this.#common.chainId());
      if (authority !== undefined) {
        this.#reads.account(authority, "nonce", "code", "emptiness");
      }
    }
  }

  /** Records the reads at the start of a call or creation. The step of its opcode, if it has one, came before. */
  #message(message: Message): void {
    if (message.depth === 0) {
      this.#transaction(message);
    }
    if (message.to === undefined) {
      return;
    }
    const code = this.#state.codeOf(hexOf(message.codeAddress));
    if (isDelegation(code)) {
      this.#reads.account(formatData(code.subarray(DELEGATED_ADDRESS_AT)), "code");
    }
  }

  #transaction({ caller, to, value }: Message): void {
    if (to === undefined) {
      this.#reads.account(hexOf(caller), "nonce");
    } else {
      this.#reads.account(hexOf(to), "code");
    }
    if (value > 0n) {
      this.#reads.account(hexOf(caller), "balance");
    }
    if (value > 0n && to !== undefined) {
      this.#reads.account(hexOf(to), "emptiness");
    }
  }

  #created(address: AddressBytes | undefined): void {
    if (address !== undefined) {
      this.#reads.account(hexOf(address), "nonce", "code", "emptiness", "storage");
    }
  }
}
