import { isNull, type RpcResponse } from "../core/rpcSource.ts";
import { type Hash, isHash, isQuantity } from "../ethereum/hex.ts";
import { isFields } from "../json/jsonBytes.ts";
import { held } from "./executions.ts";
import { NotProvenError } from "./notProven.ts";
import type { ProvenPart } from "./provenParts.ts";
import { itemResponse, type ProvenCall, type Prover, provenResponse, readPart } from "./provenReads.ts";

/** A block follows from its header and its transactions, whose root is verified. */
export const proveBlock: Prover = async (proven) => {
  const { call, context, read } = proven;
  const first = await read(call.method, call.params);
  if (first.proof === "proven" || isNull(first)) {
    return first;
  }
  const part = call.params[1] === true ? "transactions" : "hashes";
  const found = await readPart(proven, part, call.method, call.params[0]);
  const whole = found?.items.whole;
  return found === undefined || whole === undefined ? first : held(provenResponse(whole, found.block), context);
};

/** Creates the prover of a read by transaction hash. */
const proveByHash =
  (part: ProvenPart): Prover =>
  async (proven) => {
    const { call, read } = proven;
    const first = await read(call.method, call.params);
    const index = await findIndex(proven, first);
    if (first.block === undefined || index === undefined) {
      return first;
    }
    const found = await readPart(proven, part, "eth_getBlockByHash", first.block.hash);
    return found === undefined ? first : itemResponse(found, index);
  };

/** Finds the index of the transaction in the block that a node returned. Undefined if the served chain does not have it. */
const findIndex = async (proven: ProvenCall, first: RpcResponse): Promise<number | undefined> => {
  if (isNull(first) || first.block === undefined) {
    return undefined;
  }
  const found = await readPart(proven, "hashes", "eth_getBlockByHash", first.block.hash);
  const index = found?.items.indexOf(JSON.stringify(String(proven.call.params[0]).toLowerCase()));
  return index === -1 ? undefined : index;
};

export const proveTransaction = proveByHash("transactions");

export const proveReceipt = proveByHash("receipts");

/** Creates the prover of a read by index. `method` reads the block. The block also shows that it has nothing at an index. */
export const proveTransactionAt =
  (method: string): Prover =>
  async (proven) => {
    const { call, read } = proven;
    const [named, at] = call.params;
    const first = await read(call.method, call.params);
    const found = await readPart(proven, "transactions", method, named);
    if (found === undefined || !isQuantity(at)) {
      return first;
    }
    const index = BigInt(at);
    return index < BigInt(found.items.length) ? itemResponse(found, Number(index)) : provenResponse(null, found.block);
  };

const hashIn = (named: unknown): Hash | undefined =>
  isHash(named) ? named : isFields(named) && isHash(named.blockHash) ? named.blockHash : undefined;

export const proveBlockReceipts: Prover = async (proven) => {
  const { call, context, read } = proven;
  const [named] = call.params;
  const hash = hashIn(named);
  const found =
    hash === undefined
      ? await readPart(proven, "receipts", "eth_getBlockByNumber", named)
      : await readPart(proven, "receipts", "eth_getBlockByHash", hash);
  if (found === undefined) {
    return read(call.method, call.params);
  }
  const { whole } = found.items;
  if (whole === undefined) {
    throw new NotProvenError("noProof", "checked");
  }
  return held(provenResponse(whole, found.block), context);
};
