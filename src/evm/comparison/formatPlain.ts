import { formatData } from "../../ethereum/hex.ts";

/** Formats plain data as JSON text. A bigint is `{"$bigint": "1"}`, bytes are `{"$bytes": "0x01"}`, `undefined` in a list is null. */
export const formatPlain = (value: unknown): string =>
  JSON.stringify(value, (_, member: unknown) => {
    if (typeof member === "bigint") {
      return { $bigint: String(member) };
    }
    return member instanceof Uint8Array ? { $bytes: formatData(member) } : member;
  });
