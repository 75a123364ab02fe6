import type { AccountState, StateReader } from "../../core/stateReader.ts";
import type { Address, Hash } from "../../ethereum/hex.ts";

/** Passes reads to a reader that can be replaced. */
export class SwitchedReader implements StateReader {
  target: StateReader;

  constructor(target: StateReader) {
    this.target = target;
  }

  account(address: Address): AccountState | undefined {
    return this.target.account(address);
  }

  code(hash: Hash, address: Address): Uint8Array {
    return this.target.code(hash, address);
  }

  storage(address: Address, slot: Hash): Uint8Array {
    return this.target.storage(address, slot);
  }

  blockHash(number: bigint): Hash {
    return this.target.blockHash(number);
  }
}
