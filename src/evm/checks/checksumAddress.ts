import { type Address, formatData } from "../../ethereum/hex.ts";
import { keccak256 } from "../../ethereum/keccak.ts";

const encoder = new TextEncoder();

/** Formats an address in mixed case, as geth does in its messages. Source: EIP-55. */
export const checksumAddress = (address: Address): string => {
  const digits = address.slice(2);
  const hash = formatData(keccak256(encoder.encode(digits))).slice(2);
  const letters = [...digits].map((digit, at) => ((hash[at] ?? "0") >= "8" ? digit.toUpperCase() : digit));
  return `0x${letters.join("")}`;
};
