import { parseData } from "../ethereum/hex.ts";

/** The address of ether in ERC-7528. */
const ETHER = parseData("0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee");
/** keccak("Transfer(address,address,uint256)") */
const TRANSFER = parseData("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");

type RawLog = [address: Uint8Array, topics: Uint8Array[], data: Uint8Array];

/** Formats a transfer of `value` wei as the log of an ERC-20 transfer. */
export const transferLog = (from: Uint8Array, to: Uint8Array, value: bigint): RawLog => [
  ETHER,
  [TRANSFER, word(from), word(to)],
  parseData(`0x${value.toString(16).padStart(64, "0")}`),
];

/**
 * Reports whether `transferLog` created the log. This compares the identity of the address object,
 * because an override can place a contract at the address of ether.
 */
export const isTransferLog = ([address]: RawLog): boolean => address === ETHER;

const word = (address: Uint8Array): Uint8Array => {
  const bytes = new Uint8Array(32);
  bytes.set(address, 12);
  return bytes;
};
