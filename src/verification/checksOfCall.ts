import { RETENTION } from "../core/retention.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import { type Data, type Hash, isAddress, isHash, isQuantity } from "../ethereum/hex.ts";
import type { Call } from "../jsonrpc/call.ts";
import type { ExpectedLocation, ResponseChecks } from "./checkBody.ts";

const isBlockTag = (value: unknown): boolean => typeof value === "string" && !value.startsWith("0x");

const blockHashOf = (value: unknown): unknown =>
  typeof value === "object" && value !== null && "blockHash" in value ? value.blockHash : undefined;

/**
 * Returns the block that the response must be of: the call's first parameter is a number, a hash, or `{blockHash}`.
 * If the request has its block's number, `{blockHash}` is not compared: a node without EIP-1898 gets the number instead.
 */
const expectedLocation = ({ params: [first] }: Call, { block }: RpcRequest): ExpectedLocation => {
  const hash = block === undefined ? (blockHashOf(first) ?? first) : first;
  const number = block?.number ?? (isQuantity(first) && !isHash(first) ? BigInt(first) : undefined);
  return { ...(isHash(hash) && { hash }), ...(number !== undefined && { number }) };
};

const indexOf = ([, index]: readonly unknown[]): Pick<ExpectedLocation, "index"> =>
  isQuantity(index) ? { index: BigInt(index) } : {};

const transactionHash = ([first]: readonly unknown[]): string => String(first);

const JSON_ONLY: ResponseChecks = { kind: "json" };

type ChecksOf = (call: Call, request: RpcRequest, checksHashes: boolean) => ResponseChecks;

const block: ChecksOf = (call, request, checksHashes) =>
  // A pending block has no hash and no roots yet.
  isBlockTag(call.params[0])
    ? JSON_ONLY
    : {
        kind: "block",
        location: expectedLocation(call, request),
        checksHashes,
        ...(call.method.startsWith("eth_getBlock") && { transactions: call.params[1] === true ? "full" : "hashes" }),
      };
const transactionAt: ChecksOf = (call, request, checksHashes) =>
  isBlockTag(call.params[0])
    ? JSON_ONLY
    : { kind: "transaction", location: { ...expectedLocation(call, request), ...indexOf(call.params) }, checksHashes };

const raw: ChecksOf = ({ params }, _, checksHashes) =>
  checksHashes ? { kind: "raw", hash: transactionHash(params) } : JSON_ONLY;

const CHECKS_BY_METHOD = new Map<string, ChecksOf>([
  ["eth_getBlockByNumber", block],
  ["eth_getBlockByHash", block],
  ["eth_getHeaderByNumber", block],
  ["eth_getHeaderByHash", block],
  ["eth_getTransactionByBlockNumberAndIndex", transactionAt],
  ["eth_getTransactionByBlockHashAndIndex", transactionAt],
  [
    "eth_getTransactionByHash",
    ({ params }, _, checksHashes) => ({
      kind: "transaction",
      hash: transactionHash(params),
      location: {},
      checksHashes,
    }),
  ],
  [
    "eth_getTransactionReceipt",
    ({ params }, _, checksHashes) => ({ kind: "receipt", hash: transactionHash(params), checksHashes }),
  ],
  [
    "eth_getBlockReceipts",
    (call, request) =>
      isBlockTag(call.params[0])
        ? JSON_ONLY
        : { kind: "receipts", location: expectedLocation(call, request), header: undefined },
  ],
  ["eth_getRawTransactionByHash", raw],
  ["debug_getRawTransaction", raw],
]);

/** Returns the checks of the response to a call. Every response must be JSON. */
export const checksOfCall = (call: Call, request: RpcRequest, checksHashes: boolean): ResponseChecks =>
  CHECKS_BY_METHOD.get(call.method)?.(call, request, checksHashes) ?? JSON_ONLY;

/** Returns the block that a response must be of; undefined if the call names it by a tag. */
export const locationOfBlock = (call: Call, request: RpcRequest): ExpectedLocation | undefined =>
  isBlockTag(call.params[0]) ? undefined : expectedLocation(call, request);

/** The state that a response to eth_getProof must prove. */
export interface ExpectedProof {
  readonly location: ExpectedLocation & { readonly hash: Hash };
  readonly address: Data;
  readonly keys: readonly string[];
  /** The call names its block by hash, or the block is final. If not, the node may answer of another branch. */
  readonly isBound: boolean;
}

/** Returns undefined if the hash of the block is not known: it is pending, or older than the block ring. */
export const expectedProof = (
  { params: [address, keys, at] }: Call,
  { block: requested, retention }: RpcRequest,
): ExpectedProof | undefined => {
  const named = blockHashOf(at) ?? at;
  const hash = isHash(named) ? named : requested?.hash;
  if (!isAddress(address) || !Array.isArray(keys) || hash === undefined) {
    return undefined;
  }
  const location = { hash, ...(requested !== undefined && { number: requested.number }) };
  return {
    location,
    address,
    keys: keys.map(String),
    isBound: isHash(named) || RETENTION[retention].branchAnchor === "finalized",
  };
};

/** Whether the response to the method is compared with a hash that its request or the served chain contains. */
export const isProvenByHash = (method: string): boolean => CHECKS_BY_METHOD.has(method);
