import type { Context } from "../core/context.ts";
import type { BlockId } from "../core/heads.ts";
import { isFreshFromNode, isNull, parsedResult, type RpcResponse } from "../core/rpcSource.ts";
import { EMPTY_OMMERS_HASH } from "../ethereum/blockHeader.ts";
import { parseBlockNumberOrTagOrHash } from "../ethereum/blockParameter.ts";
import { type Address, formatQuantity, formatWord, type Hash, isData, parseData } from "../ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../ethereum/keccak.ts";
import { asText, formatJson, isFields } from "../json/jsonBytes.ts";
import { members } from "../json/members.ts";
import { type Awaitable, type Call, createCall } from "../jsonrpc/call.ts";
import { provenValuesOf } from "../state/fetch/proofReader.ts";
import type { StateField, StateKey } from "../state/stateKey.ts";
import type { StateMethod } from "../state/stateReads.ts";
import { type ProofValues, readProvenAccount } from "../verification/provenAccount.ts";
import { isAnchored } from "./anchors.ts";
import { isInRing, READ_BLOCK, resolveBlock } from "./blockParams.ts";
import type { JsonItems } from "./jsonItems.ts";
import type { Chain } from "./method.ts";
import { NotProvenError } from "./notProven.ts";
import { type CanonicalJson, parseParams, readAddress, readSlot, required } from "./paramSpec.ts";
import type { ProvenPart } from "./provenParts.ts";

/** One call whose answer must be proven. */
export interface ProvenCall {
  readonly chain: Pick<Chain, "committed" | "logLimits" | "nodes" | "state" | "provenBlocks">;
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

/** A part of a block whose header and transactions are verified. */
export interface ReadPart {
  readonly block: BlockId;
  readonly items: JsonItems;
}

/**
 * Reads a part of a block, which `method` reads in full. Returns undefined if its transactions do not follow from a header that the
 * request or the served chain names.
 */
export const readPart = async (
  proven: ProvenCall,
  part: ProvenPart,
  method: string,
  named: unknown,
): Promise<ReadPart | undefined> => {
  const response = await proven.read(method, [named, true]);
  const { block, proof, body } = response;
  const isRooted = proof !== undefined && block !== undefined && isAnchored(block, proven);
  if (!isRooted || !(body instanceof Uint8Array)) {
    return undefined;
  }
  const { provenBlocks } = proven.chain;
  const items = provenBlocks.find(block.hash, part) ?? (await formatPart(proven, part, block, body));
  return items && { block, items };
};

const formatPart = async (
  proven: ProvenCall,
  part: ProvenPart,
  block: BlockId,
  body: Uint8Array,
): Promise<JsonItems | undefined> => {
  const needsReceipts = part === "receipts" || part === "logs";
  const receipts = needsReceipts ? await readReceipts(proven, block) : undefined;
  return proven.chain.provenBlocks.format({ part, block, body, receipts }, proven.context);
};

/** Reads the receipts of a block, which its root verifies. Throws without them. */
const readReceipts = async ({ context, read }: ProvenCall, { number, hash }: BlockId): Promise<Uint8Array> => {
  const isCanonical = context.view.heads.at(number)?.hash === hash;
  const { proof, body } = await read("eth_getBlockReceipts", [isCanonical ? formatQuantity(number) : hash]);
  if (proof === undefined || !(body instanceof Uint8Array)) {
    throw new NotProvenError("noProof", proof);
  }
  return body;
};

/** Returns the answer with an item of a part, in memory of its own. */
export const itemResponse = ({ block, items }: ReadPart, index: number): RpcResponse => {
  const item = items.at(index);
  if (item === undefined) {
    throw new NotProvenError("noProof", "checked");
  }
  return provenResponse(new Uint8Array(item), block);
};

/** Creates the prover of a count that follows from a whole block. `method` reads the block. Undefined: the count does not follow. */
const proveOfBlock =
  (countOf: (items: JsonItems) => number | undefined) =>
  (method: string): Prover =>
  async (proven) => {
    const { call, read } = proven;
    const first = await read(call.method, call.params);
    if (first.proof === "proven" || isNull(first)) {
      return first;
    }
    const found = await readPart(proven, "hashes", method, call.params[0]);
    const count = found && countOf(found.items);
    return found === undefined || count === undefined ? first : provenResponse(formatQuantity(count), found.block);
  };

/** Creates the prover of a count of transactions. */
export const proveCount = proveOfBlock(({ length }) => length);

const NO_UNCLES = JSON.stringify(EMPTY_OMMERS_HASH);

/** Creates the prover of a count of uncles: a block without any has the hash of an empty list. */
export const proveUncleCount = proveOfBlock(({ text }) => {
  for (const { key, value } of members(text)) {
    if (key === "sha3Uncles") {
      return asText(value) === NO_UNCLES ? 0 : undefined;
    }
  }
  return undefined;
});

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
