import type { HeaderFields } from "../core/heads.ts";
import { isAddress, isData, isHash, ZERO_HASH } from "../ethereum/hex.ts";
import { laterFields } from "../ethereum/unknownFields.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { quantityOf } from "../verification/jsonFields.ts";
import type { ParentBlock } from "./simulatedHeader.ts";

const wrong = (name: string) => new RpcError(CODES.SERVER, `header not found: the block of a node has no ${name}`);

/** Parses a node's block for a simulation on top of it. Throws RpcError if a required field is missing. */
export const parseParent = (fields: HeaderFields): ParentBlock => {
  const quantity = (name: string) => {
    const value = optional(name);
    if (value === undefined) {
      throw wrong(name);
    }
    return value;
  };
  const optional = (name: string) => quantityOf(fields[name]);
  const { hash, miner, extraData, mixHash, parentBeaconBlockRoot } = fields;
  if (!isHash(hash)) {
    throw wrong("hash");
  }
  if (!isAddress(miner)) {
    throw wrong("miner");
  }
  return {
    hash,
    miner,
    number: quantity("number"),
    timestamp: quantity("timestamp"),
    gasLimit: quantity("gasLimit"),
    gasUsed: quantity("gasUsed"),
    difficulty: optional("difficulty") ?? 0n,
    mixHash: isHash(mixHash) ? mixHash : ZERO_HASH,
    extraData: isData(extraData) ? extraData : "0x",
    baseFeePerGas: optional("baseFeePerGas"),
    blobGasUsed: optional("blobGasUsed") ?? 0n,
    excessBlobGas: optional("excessBlobGas") ?? 0n,
    parentBeaconBlockRoot: isHash(parentBeaconBlockRoot) ? parentBeaconBlockRoot : ZERO_HASH,
    slotNumber: optional("slotNumber"),
    laterFields: laterFields(fields),
  };
};
