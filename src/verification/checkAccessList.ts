import { parseData } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import { hashBlockAccessList, parseBlockAccessList } from "./blockAccessList.ts";
import { type Finding, failed, failIfMalformed, passed } from "./findings.ts";
import { dataOf, isSame } from "./jsonFields.ts";

/** The checks of a block access list. */
export interface AccessListChecks {
  readonly kind: "accessList";
  /** That of the header. */
  readonly hash: string;
}

/** Checks the hash of a block access list, given as JSON, or as its RLP in hex. */
export const checkAccessList = (value: unknown, checks: AccessListChecks): Finding =>
  failIfMalformed("accessList", () => {
    const hash =
      typeof value === "string"
        ? keccak256Hex(parseData(dataOf(value)))
        : hashBlockAccessList(parseBlockAccessList(value));
    return isSame(hash, checks.hash) ? passed("accessList") : failed("accessList");
  });
