import type { Address, Data, Hash } from "../../../src/ethereum/hex.ts";
import {
  balanceKey,
  clearedKey,
  codeKey,
  nonceKey,
  type ReadValue,
  StateValuesReader,
  slotKey,
  wordOf,
} from "./stateKeys.ts";

export interface AccountSnapshot {
  readonly exists: boolean;
  readonly balance: bigint;
  readonly nonce: bigint;
  readonly code: Data;
}

/** An account that a phase touched, before and after it. */
export interface AccountDiff {
  readonly address: Address;
  readonly before: AccountSnapshot;
  readonly after: AccountSnapshot;
  /** The touched slots with their values before and after. */
  readonly slots: readonly (readonly [slot: Hash, before: Hash, after: Hash])[];
  /** The account was created in this phase and ran SELFDESTRUCT, perhaps in a call that was reverted. */
  readonly isDestructed: boolean;
}

/** A creation, or a SELFDESTRUCT, in the form of callTracer. */
export interface CallFrame {
  readonly type: "CREATE" | "CREATE2" | "SELFDESTRUCT";
  readonly from: Address;
  readonly to: Address;
}

/** The writes of a part of a block: before the transactions, of one transaction, or after them. */
export type PhaseDiff = readonly AccountDiff[];

interface TouchedAccount {
  readonly before: AccountSnapshot;
  readonly slots: Map<Hash, Hash>;
}

/** Collects the writes of one block on the state of its parent. */
export class BlockDraft {
  readonly writes = new Map<string, string>();
  readonly phases: PhaseDiff[] = [];
  /** The creations and self-destructions of each phase. */
  readonly frames: (readonly CallFrame[])[] = [];
  readonly state: StateValuesReader;
  #calls: CallFrame[] = [];
  #touched = new Map<Address, TouchedAccount>();

  constructor(readParent: ReadValue) {
    this.state = new StateValuesReader((key) => this.writes.get(key) ?? readParent(key));
  }

  /** Records that the phase read the account. Tracers list it. */
  touch(address: Address): void {
    if (!this.#touched.has(address)) {
      this.#touched.set(address, { before: this.#snapshot(address), slots: new Map() });
    }
  }

  setBalance(address: Address, balance: bigint): void {
    this.touch(address);
    this.writes.set(balanceKey(address), `0x${balance.toString(16)}`);
  }

  addBalance(address: Address, amount: bigint): void {
    this.setBalance(address, this.state.balance(address) + amount);
  }

  setNonce(address: Address, nonce: bigint): void {
    this.touch(address);
    this.writes.set(nonceKey(address), `0x${nonce.toString(16)}`);
  }

  setCode(address: Address, code: Data): void {
    this.touch(address);
    this.writes.set(codeKey(address), code);
  }

  setSlot(address: Address, slot: Hash, value: bigint): void {
    this.touch(address);
    const before = this.state.slot(address, slot);
    const slots = this.#touched.get(address)?.slots;
    if (!slots?.has(slot)) {
      slots?.set(slot, before);
    }
    this.writes.set(slotKey(address, this.state.cleared(address), slot), wordOf(value));
  }

  /** Removes an account with all its slots. */
  destroy(address: Address): void {
    this.setBalance(address, 0n);
    this.setNonce(address, 0n);
    this.setCode(address, "0x");
    this.writes.set(clearedKey(address), `${Number(this.state.cleared(address)) + 1}`);
    this.runSelfDestruct(address);
  }

  /** Creates a contract without a code, which raises the nonce of its creator. */
  create(creator: Address, address: Address, type: "CREATE" | "CREATE2" = "CREATE2"): void {
    this.setNonce(creator, this.state.nonce(creator) + 1n);
    this.setNonce(address, 1n);
    this.#calls.push({ type, from: creator, to: address });
  }

  /** Records a creation and a SELFDESTRUCT of the account, both reverted. */
  destroyReverted(creator: Address, address: Address): void {
    this.touch(address);
    this.#calls.push({ type: "CREATE2", from: creator, to: address });
    this.runSelfDestruct(address);
  }

  /** Records a SELFDESTRUCT whose account is still there. */
  runSelfDestruct(address: Address): void {
    this.#calls.push({ type: "SELFDESTRUCT", from: address, to: address });
  }

  /** Ends a phase: the writes before the transactions, then each transaction, then the writes after them. */
  endPhase(): void {
    const touched = [...this.#touched];
    this.#touched = new Map();
    const frames = this.#calls;
    this.#calls = [];
    this.frames.push(frames);
    const destructed = new Set(frames.flatMap(({ type, from }) => (type === "SELFDESTRUCT" ? [from] : [])));
    this.phases.push(
      touched.map(([address, { before, slots }]) => ({
        address,
        before,
        after: this.#snapshot(address),
        isDestructed: destructed.has(address),
        slots: [...slots].map(([slot, value]) => [slot, value, this.state.slot(address, slot)] as const),
      })),
    );
  }

  #snapshot(address: Address): AccountSnapshot {
    const { state } = this;
    return {
      exists: state.exists(address),
      balance: state.balance(address),
      nonce: state.nonce(address),
      code: state.code(address),
    };
  }
}
