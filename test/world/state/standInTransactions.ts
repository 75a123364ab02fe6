import { privateKeyToAccount } from "viem/accounts";
import { type Address, parseData } from "../../../src/ethereum/hex.ts";
import { concatBytes, encodeBytes, encodeList, encodeNumber } from "../../../src/ethereum/rlp.ts";
import { CHAIN_ID, type StandInTransaction } from "./standInChain.ts";

/** Differs by sender, so that the hash does. */
const dummySignature = (sender: Address): Uint8Array[] => [
  encodeNumber(1),
  encodeBytes(concatBytes([new Uint8Array(12).fill(7), parseData(sender)])),
  encodeBytes(new Uint8Array(32).fill(9)),
];

export interface PlainTransaction {
  readonly sender: Address;
  readonly nonce: bigint;
  /** Null: the transaction creates a contract. */
  readonly to: Address | null;
  readonly value: bigint;
}

const commonFields = ({ nonce, to, value }: PlainTransaction): Uint8Array[] => [
  ...[encodeNumber(CHAIN_ID), encodeNumber(nonce), encodeNumber(1), encodeNumber(2_000_000_000), encodeNumber(100_000)],
  ...[encodeBytes(parseData(to ?? "0x")), encodeNumber(value), encodeBytes(new Uint8Array(0)), encodeList([])],
];

/** Creates a transaction of type 2. Its signature is not the sender's. */
export const createTransaction = (transaction: PlainTransaction): StandInTransaction => ({
  sender: transaction.sender,
  raw: concatBytes([
    Uint8Array.of(2),
    encodeList([...commonFields(transaction), ...dummySignature(transaction.sender)]),
  ]),
});

export type Authority = ReturnType<typeof privateKeyToAccount>;

/** Creates an account that can sign authorizations. */
export const createAuthority = (index: number): Authority =>
  privateKeyToAccount(`0x${(index + 1).toString(16).padStart(64, "0")}`);

/** Creates a transaction of type 4 with an authorization that its authority signed (EIP-7702). */
export const createDelegation = async (
  transaction: PlainTransaction,
  authority: Authority,
  { target, nonce }: { readonly target: Address; readonly nonce: bigint },
): Promise<StandInTransaction> => {
  const signed = await authority.signAuthorization({
    address: target,
    chainId: Number(CHAIN_ID),
    nonce: Number(nonce),
  });
  const authorization = encodeList([
    ...[encodeNumber(CHAIN_ID), encodeBytes(parseData(target)), encodeNumber(nonce)],
    ...[encodeNumber(signed.yParity ?? 0), encodeNumber(BigInt(signed.r)), encodeNumber(BigInt(signed.s))],
  ]);
  const fields = [...commonFields(transaction), encodeList([authorization]), ...dummySignature(transaction.sender)];
  return { sender: transaction.sender, raw: concatBytes([Uint8Array.of(4), encodeList(fields)]) };
};
