import { type Address, type Hash, parseData } from "./hex.ts";
import { concatBytes, encodeBytes, encodeList, encodeNumber } from "./rlp.ts";
import { DEPOSIT_TYPE } from "./transaction.ts";

export interface Deposit {
  readonly sourceHash: Hash;
  readonly from: Address;
  readonly to: Address | null;
  readonly mint: bigint;
  readonly value: bigint;
  readonly gas: bigint;
  readonly isSystemTx: boolean;
  readonly input: Uint8Array;
}

/** The EIP-2718 bytes of a deposit, whose keccak is its hash. OP stack, specs/protocol/deposits.md. */
export const encodeDeposit = (deposit: Deposit): Uint8Array =>
  concatBytes([
    Uint8Array.of(DEPOSIT_TYPE),
    encodeList([
      encodeBytes(parseData(deposit.sourceHash)),
      encodeBytes(parseData(deposit.from)),
      encodeBytes(parseData(deposit.to ?? "0x")),
      encodeNumber(deposit.mint),
      encodeNumber(deposit.value),
      encodeNumber(deposit.gas),
      encodeNumber(deposit.isSystemTx ? 1 : 0),
      encodeBytes(deposit.input),
    ]),
  ]);
