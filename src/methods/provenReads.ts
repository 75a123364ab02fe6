import type { Context } from "../core/context.ts";
import type { BlockId } from "../core/heads.ts";
import { isFreshFromNode, isNull, parsedResult, type RpcResponse } from "../core/rpcSource.ts";
import { EMPTY_OMMERS_HASH } from "../ethereum/blockHeader.ts";
import { parseBlockNumberOrTagOrHash } from "../ethereum/blockParameter.ts";
import { type Address, formatQuantity, formatWord, type Hash, isData, parseData } from "../ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../ethereum/keccak.ts";
import { type Fields, formatJson, isFields } from "../json/jsonBytes.ts";
import { type Awaitable, type Call, createCall } from "../jsonrpc/call.ts";
import { provenValuesOf } from "../state/fetch/proofReader.ts";
import type { StateField, StateKey } from "../state/stateKey.ts";
import type { StateMethod } from "../state/stateReads.ts";
import { type ProofValues, readProvenAccount } from "../verification/provenAccount.ts";
import { isAnchored } from "./anchors.ts";
import { isInRing, READ_BLOCK, resolveBlock } from "./blockParams.ts";
import type { Chain } from "./method.ts";
import { NotProvenError } from "./notProven.ts";
import { type CanonicalJson, parseParams, readAddress, readSlot, required } from "./paramSpec.ts";

/** One call whose answer must be proven. */
export interface ProvenCall {
  readonly chain: Pick<Chain, "ownHashes" | "logLimits" | "nodes" | "state">;
  readonly call: Call;
  /** Its view has no pending blocks. */
  readonly context: Context;
  /** Sends a call as a client does, in this context. */
  read(method: string, params: readonly unknown[]): Awaitable<RpcResponse>;
}

/** Returns an answer, proven or not. */
export type Prover = (call: ProvenCall) => Awaitable<RpcResponse>;

/** Answers that are proven as they are. */
export const asItIs: Prover = ({ call, read }) => read(call.method, call.params);

/** Creates the response that is computed from proven parts of a block. */
export const provenResponse = (value: CanonicalJson | Uint8Array, block: BlockId): RpcResponse => ({
  body: value instanceof Uint8Array ? value : formatJson(value),
  status: { hit: "local" },
  block,
  proof: "proven",
});

/** A block whose header and transactions are verified, but for the senders. */
export interface RootedBlock {
  readonly block: BlockId;
  readonly fields: Fields;
  readonly transactions: readonly Fields[];
}

/** Reads a block in full. Returns undefined if its transactions do not follow from a header that the request or the served chain names. */
export const readRooted = async (
  proven: ProvenCall,
  method: string,
  named: unknown,
): Promise<RootedBlock | undefined> => {
  const response = await proven.read(method, [named, true]);
  const { block, proof } = response;
  const fields = parsedResult(response);
  if (proof === undefined || block === undefined || !isAnchored(block, proven) || !isFields(fields)) {
    return undefined;
  }
  const { transactions } = fields;
  return Array.isArray(transactions) && transactions.every(isFields) ? { block, fields, transactions } : undefined;
};

/** Reads the receipts of a block, which its root verifies, in the order of its transactions. Throws without them. */
export const readReceipts = async (
  { context, read }: ProvenCall,
  { block, transactions }: RootedBlock,
): Promise<readonly Fields[]> => {
  const { number, hash } = block;
  const isCanonical = context.view.heads.at(number)?.hash === hash;
  const response = await read("eth_getBlockReceipts", [isCanonical ? formatQuantity(number) : hash]);
  const receipts = parsedResult(response);
  const isOfBlock = (receipt: unknown): receipt is Fields => isFields(receipt) && receipt.blockHash === hash;
  if (response.proof === undefined || !Array.isArray(receipts) || !receipts.every(isOfBlock)) {
    throw new NotProvenError("noProof", response.proof);
  }
  if (receipts.length !== transactions.length) {
    throw new NotProvenError("noProof", response.proof);
  }
  return receipts;
};

/** Creates the prover of a count that follows from a whole block. `method` reads the block. Undefined: the count does not follow. */
const proveOfBlock =
  (countOf: (rooted: RootedBlock) => number | undefined) =>
  (method: string): Prover =>
  async (proven) => {
    const { call, read } = proven;
    const first = await read(call.method, call.params);
    if (first.proof === "proven" || isNull(first)) {
      return first;
    }
    const rooted = await readRooted(proven, method, call.params[0]);
    const count = rooted && countOf(rooted);
    return rooted === undefined || count === undefined ? first : provenResponse(formatQuantity(count), rooted.block);
  };

/** Creates the prover of a count of transactions. */
export const proveCount = proveOfBlock(({ transactions }) => transactions.length);

/** Creates the prover of a count of uncles: a block without any has the hash of an empty list. */
export const proveUncleCount = proveOfBlock(({ fields }) => (fields.sha3Uncles === EMPTY_OMMERS_HASH ? 0 : undefined));

const SLOT = [required("address", readAddress), required("position", readSlot)];
const ACCOUNT = [required("address", readAddress)];

/** An account, or one of its slots, as a proof has it. */
interface ProvenRead {
  readonly account: ProofValues;
  readonly block: BlockId;
  readonly address: Address;
  readonly slots: readonly Hash[];
}

/** The value that a call reads. */
interface WantedValue {
  readonly key: StateKey;
  readonly slots: readonly Hash[];
  /** The block, as the call names it. */
  readonly parameter: unknown;
}

const wantedOf = ({ params }: Call, field: StateField): WantedValue => {
  const isSlot = field === "slot";
  const [address, ...slots] = parseParams(params.slice(0, isSlot ? 2 : 1), isSlot ? SLOT : ACCOUNT) as [
    Address,
    ...Hash[],
  ];
  return { key: { field, address, slot: slots[0] }, slots, parameter: params[isSlot ? 2 : 1] ?? "latest" };
};

/** Returns the answer if the value is known and proven. */
const findKnown = async (
  { chain, call, context }: ProvenCall,
  { key, parameter }: WantedValue,
): Promise<RpcResponse | undefined> => {
  const block = resolveBlock(parseBlockNumberOrTagOrHash(parameter, READ_BLOCK), context.view.heads);
  const method = call.method as StateMethod;
  return isInRing(block) ? chain.state?.findProven({ method, key, block, context }) : undefined;
};

/** Creates the prover of a state value. If it is not known and proven, one proof is read. Its values become known. */
const proveState =
  (field: StateField, answer: (read: ProvenRead, proven: ProvenCall) => Awaitable<RpcResponse>): Prover =>
  async (proven) => {
    const wanted = wantedOf(proven.call, field);
    const { address } = wanted.key;
    const known = await findKnown(proven, wanted);
    if (known !== undefined) {
      return known;
    }
    const enter = proven.chain.state?.beginProof();
    const response = await proven.read("eth_getProof", [address, wanted.slots, wanted.parameter]);
    const proof = parsedResult(response);
    const { block } = response;
    if (response.proof !== "proven" || block === undefined || !isFields(proof)) {
      throw new NotProvenError("noProof", response.proof);
    }
    const account = readProvenAccount(proof);
    if (isFreshFromNode(response)) {
      enter?.(provenValuesOf(account, address, wanted.slots), block);
    }
    return answer({ account, block, address, slots: wanted.slots }, proven);
  };

const hasHash = (body: RpcResponse["body"], codeHash: string): boolean => {
  const code = parsedResult({ body });
  return isData(code) && keccak256Hex(parseData(code)) === codeHash;
};

/** Reads the code of a proven hash. If it is another one, a node that has the right one is asked. */
const answerCode = async (
  { account, block, address }: ProvenRead,
  { chain, context, read }: ProvenCall,
): Promise<RpcResponse> => {
  const { codeHash } = account;
  if (codeHash === EMPTY_CODE_HASH) {
    return provenResponse("0x", block);
  }
  const call = createCall("eth_getCode", [address, { blockHash: block.hash }]);
  const known = await read(call.method, call.params);
  if (hasHash(known.body, codeHash)) {
    return { ...known, block, proof: "proven" };
  }
  const isComplete = (body: Uint8Array): boolean => hasHash(body, codeHash);
  const request = { ...call, retention: "never", canonicalParams: "", isComplete } as const;
  const response = await chain.nodes.request(request, context);
  return hasHash(response.body, codeHash) ? { ...response, block, proof: "proven" } : response;
};

export const proveBalance = proveState("balance", ({ account, block }) =>
  provenResponse(formatQuantity(account.balance), block),
);
export const proveNonce = proveState("nonce", ({ account, block }) =>
  provenResponse(formatQuantity(account.nonce), block),
);
export const proveSlot = proveState("slot", ({ account, block, slots: [slot = "0x"] }) =>
  provenResponse(formatWord(account.slot(slot)), block),
);
export const proveCode = proveState("code", answerCode);
