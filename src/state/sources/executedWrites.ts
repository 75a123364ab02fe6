import type { AccountChange, StateChanges } from "../../core/stateReader.ts";
import { EMPTY_CODE_HASH } from "../../ethereum/keccak.ts";
import { mergeChanges } from "../../evm/reads/writtenState.ts";
import { packWrites } from "../store/packedWrites.ts";
import type { AccountWrites } from "../writeSet.ts";

const NOTHING = new Uint8Array(0);

const writesOfChange = ({ account, code, isCleared, slots }: AccountChange): AccountWrites => {
  const codeHash = account?.codeHash ?? EMPTY_CODE_HASH;
  // Without new bytes, the account was destroyed or created without a code.
  const isCodeWritten = code !== undefined || account === undefined || isCleared;
  return {
    balance: account?.balance ?? 0n,
    nonce: account?.nonce ?? 0n,
    ...(isCodeWritten && { code: code ?? (codeHash === EMPTY_CODE_HASH ? NOTHING : "unknown"), codeHash }),
    ...(isCleared && { otherSlots: "cleared" }),
    slots,
  };
};

/** Packs the writes of consecutive executions, oldest first. An account that was only read may be among them, with its value. */
export const packChanges = (executions: readonly StateChanges[]): Uint8Array =>
  packWrites(new Map([...mergeChanges(executions)].map(([address, change]) => [address, writesOfChange(change)])));
