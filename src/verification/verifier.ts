import type { BlockId, Heads } from "../core/heads.ts";
import { UnverifiedError } from "../core/node.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import { isNothing } from "../core/wholeResults.ts";
import { isData, parseData } from "../ethereum/hex.ts";
import { rawTransactionHash } from "../ethereum/rawTransactionHash.ts";
import { parseJson } from "../json/jsonBytes.ts";
import { type Awaitable, type Call, whenKnown } from "../jsonrpc/call.ts";
import { isJson, type ResponseChecks } from "./checkBody.ts";
import { Checker, MAX_SCANNED_BYTES, STATED, type VerifiedCall, type VerifiedResponse } from "./checker.ts";
import type { Evidence } from "./evidence.ts";
import { isSame } from "./jsonFields.ts";
import type { KnownHeader } from "./knownHeader.ts";
import { checkForm } from "./resultForms.ts";
import { verifyAccessList } from "./verifyAccessList.ts";
import { blockChecks, verifyBlock } from "./verifyBlock.ts";
import { verifyCount } from "./verifyCount.ts";
import { receiptChecks, verifyReceipt } from "./verifyReceipt.ts";
import { receiptsChecks, verifyReceipts } from "./verifyReceipts.ts";
import { verifyStateProof } from "./verifyStateProof.ts";
import type { VerifyThreads } from "./verifyThreads.ts";
import { transactionChecks, verifyRaw, verifyTransaction } from "./verifyTransaction.ts";

export type VerifyLevel = "off" | "cheap" | "full";

/** How the bodies of a method are verified. */
interface BodyKind {
  /** At the level `full`. */
  verify(checker: Checker, verifiedCall: VerifiedCall, body: Uint8Array): Awaitable<VerifiedResponse>;
  /** The checks of the level `cheap`, which compute no hash; absent or undefined if there are none. */
  readonly cheap?: (call: Call, request: RpcRequest) => ResponseChecks | undefined;
  /** The body is compared with a hash that the request or the served chain contains. */
  readonly isProvenByHash: boolean;
}

const BLOCK: BodyKind = {
  verify: verifyBlock,
  cheap: (call, request) => blockChecks(call, request, false),
  isProvenByHash: true,
};
const TRANSACTION: BodyKind = {
  verify: verifyTransaction,
  cheap: (call, request) => transactionChecks(call, request, false),
  isProvenByHash: true,
};
const RECEIPT: BodyKind = { verify: verifyReceipt, cheap: (call) => receiptChecks(call, false), isProvenByHash: true };
const RECEIPTS: BodyKind = { verify: verifyReceipts, cheap: receiptsChecks, isProvenByHash: true };
const RAW: BodyKind = { verify: verifyRaw, isProvenByHash: true };
const COUNT: BodyKind = { verify: verifyCount, isProvenByHash: false };
const PROOF: BodyKind = { verify: verifyStateProof, isProvenByHash: false };
const ACCESS_LIST: BodyKind = { verify: verifyAccessList, isProvenByHash: false };

/** The bodies of other methods are verified by their form alone. */
const BODY_KINDS: ReadonlyMap<string, BodyKind> = new Map([
  ["eth_getBlockByNumber", BLOCK],
  ["eth_getBlockByHash", BLOCK],
  ["eth_getHeaderByNumber", BLOCK],
  ["eth_getHeaderByHash", BLOCK],
  ["eth_getTransactionByBlockNumberAndIndex", TRANSACTION],
  ["eth_getTransactionByBlockHashAndIndex", TRANSACTION],
  ["eth_getTransactionByHash", TRANSACTION],
  ["eth_getTransactionReceipt", RECEIPT],
  ["eth_getBlockReceipts", RECEIPTS],
  ["eth_getRawTransactionByHash", RAW],
  ["debug_getRawTransaction", RAW],
  ["eth_getBlockTransactionCountByHash", COUNT],
  ["eth_getBlockTransactionCountByNumber", COUNT],
  ["eth_getUncleCountByBlockHash", COUNT],
  ["eth_getUncleCountByBlockNumber", COUNT],
  ["eth_getProof", PROOF],
  ["eth_getBlockAccessList", ACCESS_LIST],
  ["debug_getRawBlockAccessList", ACCESS_LIST],
]);

/** Whether the response to the method is compared with a hash that its request or the served chain contains. */
export const isProvenByHash = (method: string): boolean => BODY_KINDS.get(method)?.isProvenByHash === true;

/** A node that accepted a raw transaction returns its hash. That of an unknown type is not compared. */
const requireSentHash = ({ node, call }: VerifiedCall, body: Uint8Array): void => {
  const [raw] = call.method === "eth_sendRawTransaction" ? call.params : [];
  const hash = isData(raw) ? rawTransactionHash(parseData(raw)) : undefined;
  if (hash !== undefined && !isSame(parseJson(body), hash)) {
    throw new UnverifiedError(node.name, "transaction", true);
  }
};

/** Verifies the responses of one chain's nodes. */
export class Verifier {
  readonly level: VerifyLevel;
  readonly #checker: Checker;

  /** `hasLagoon`: whether the chain has a time for Lagoon. */
  constructor(
    level: VerifyLevel,
    evidence: Evidence,
    threads: Pick<VerifyThreads, "check">,
    hasLagoon: () => boolean = () => false,
  ) {
    this.level = level;
    this.#checker = new Checker(evidence, threads, hasLagoon);
  }

  /** Returns the header with that hash, if it was computed, or is that of a block of the ring. Undefined if it is not known. */
  headerOf(block: Partial<Pick<BlockId, "number">> & { readonly hash: string }, heads: Heads): KnownHeader | undefined {
    return this.level === "full" && !this.#checker.evidence.isOff("header")
      ? this.#checker.headers.find(block, heads)
      : undefined;
  }

  /** Whether the receipts root of block receipts that are served is verified. */
  verifiesReceipts(): boolean {
    return this.level === "full" && this.#checker.verifiesReceipts();
  }

  /** Whether the receipts of a block are known, so that a single one is compared with them. */
  hasReceipts(hash: string): boolean {
    return this.level === "full" && this.#checker.blocks.get(hash).receipts !== undefined;
  }

  /** Verifies a body by the given checks. Returns and throws like `verify`. */
  check(...args: Parameters<Checker["check"]>): ReturnType<Checker["check"]> {
    return this.#checker.check(...args);
  }

  /** Returns a plain value if the verification is fast. Throws or rejects with UnverifiedError. */
  verify(verifiedCall: VerifiedCall, body: Uint8Array): Awaitable<VerifiedResponse> {
    const { level } = this;
    const { node, call, request } = verifiedCall;
    if (level === "off") {
      return STATED;
    }
    if (request.write) {
      return whenKnown(this.#checker.checkForm(verifiedCall, body), (verified) => {
        requireSentHash(verifiedCall, body);
        return verified;
      });
    }
    const form = checkForm(call.method, body);
    if (form === "wrong" || form === "missing") {
      const isScanned = body.byteLength <= MAX_SCANNED_BYTES;
      // A node without the block returns `null`.
      throw new UnverifiedError(node.name, isScanned && !isJson(body) ? "json" : "form", form === "wrong");
    }
    if (isNothing(call.method, body)) {
      return STATED;
    }
    const kind = BODY_KINDS.get(call.method);
    if (level === "full" && kind !== undefined) {
      return kind.verify(this.#checker, verifiedCall, body);
    }
    const checks = kind?.cheap?.(call, request);
    if (checks !== undefined) {
      return whenKnown(this.#checker.check(verifiedCall, body, checks), () => STATED);
    }
    return form === "scanned" ? STATED : this.#checker.checkForm(verifiedCall, body);
  }
}
