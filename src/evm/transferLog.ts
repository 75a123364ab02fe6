import { parseData } from "../ethereum/hex.ts";

/** ERC-7528's address of ether, and keccak("Transfer(address,address,uint256)"). */
const ETHER = parseData("0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee");
const TRANSFER = parseData("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");

type RawLog = [address: Uint8Array, topics: Uint8Array[], data: Uint8Array];

/** A contract may stand at ether's address by an override, so what was made here is remembered. */
const made = new WeakSet<RawLog>();

/** Value that moved, in the form of an ERC-20 transfer, to stand among logs. */
export const transferLog = (from: Uint8Array, to: Uint8Array, value: bigint): RawLog => {
  const log: RawLog = [ETHER, [TRANSFER, word(from), word(to)], parseData(`0x${value.toString(16).padStart(64, "0")}`)];
  made.add(log);
  return log;
};

export const isTransferLog = (log: RawLog): boolean => made.has(log);

const word = (address: Uint8Array): Uint8Array => {
  const bytes = new Uint8Array(32);
  bytes.set(address, 12);
  return bytes;
};
