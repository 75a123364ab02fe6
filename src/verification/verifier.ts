import { LRUCache } from "lru-cache";
import type { BlockId, Heads } from "../core/heads.ts";
import { isNull } from "../core/isNull.ts";
import { type Check, NodeError, UnverifiedError } from "../core/node.ts";
import type { RequestContext, RpcRequest } from "../core/rpcSource.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { type Call, createCall } from "../jsonrpc/call.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import { checkBody, isJson, type Place, type Task } from "./checkBody.ts";
import type { Evidence } from "./evidence.ts";
import type { Finding } from "./findings.ts";
import type { VerifyPool } from "./pool.ts";
import type { ReceiptsHeader } from "./receipts.ts";
import { readReceiptsHeader } from "./receiptsHeader.ts";
import { readResponseBlock } from "./responseBlock.ts";
import { taskOf } from "./tasks.ts";

export type VerifyLevel = "off" | "cheap" | "full";

/** The node that gave an answer. */
export interface VerifiedNode {
  readonly name: string;
  send(call: Call, reach: Pick<RequestContext, "signal" | "deadlineMs">): Promise<Uint8Array>;
}

export interface VerifierOptions {
  readonly level: VerifyLevel;
  readonly evidence: Evidence;
  readonly pool: VerifyPool;
  /** A check of an answer that is served could not be computed. */
  onUncomputable(check: Check): void;
}

export interface Verifier {
  readonly level: VerifyLevel;
  /** The bloom in hex of a block whose header has that hash; undefined where that is not known. */
  bloomOf(block: BlockId, heads: Heads): string | undefined;
  /** Whether block receipts that are served make their block's root. */
  provesReceipts(): boolean;
  /** The body, perhaps in other memory. Throws or rejects with UnverifiedError; a plain value where nothing takes long. */
  verify(
    node: VerifiedNode,
    call: Call,
    question: RpcRequest,
    body: Uint8Array,
    context: RequestContext,
  ): Uint8Array | Promise<Uint8Array>;
  /** The same for a task made elsewhere. */
  check(node: string, body: Uint8Array, task: Task): Uint8Array | Promise<Uint8Array>;
}

/** Above this, to parse and to hash takes about 1 ms: a thread does it. */
const MAX_HERE_BYTES = 24 * 1024;
/** The same for a scan alone. */
const MAX_SCANNED_BYTES = 128 * 1024;
/** What could not be verified where the thread failed. */
const CHECK_OF: Readonly<Record<Task["kind"], Check>> = {
  json: "json",
  block: "block",
  transaction: "transaction",
  receipt: "transaction",
  raw: "transaction",
  receipts: "receipts",
  logs: "logs",
};
const MAX_HEADERS = 1_024;

export const createVerifier = ({ level, evidence, pool, onUncomputable }: VerifierOptions): Verifier => {
  /** Headers whose hash was computed, by that hash. */
  const headers = new LRUCache<string, ReceiptsHeader>({ max: MAX_HEADERS });

  const judge = (findings: readonly Finding[], node: string): void => {
    for (const finding of findings) {
      const judgement = evidence.judge(finding, node);
      if (judgement === "lie" || judgement === "doubtful") {
        throw new UnverifiedError(node, finding.check, judgement === "lie");
      }
      if (judgement === "accepted") onUncomputable(finding.check);
    }
  };

  const checkInThread = async (node: string, body: Uint8Array, task: Task): Promise<Uint8Array> => {
    let verified: Awaited<ReturnType<VerifyPool["check"]>>;
    try {
      verified = await pool.check(body, task);
    } catch (cause) {
      throw new UnverifiedError(node, CHECK_OF[task.kind], false, { cause });
    }
    judge(verified.findings, node);
    return verified.body;
  };

  const check = (node: string, body: Uint8Array, task: Task): Uint8Array | Promise<Uint8Array> => {
    const maxBytes = task.kind === "json" ? MAX_SCANNED_BYTES : MAX_HERE_BYTES;
    const bytes = body.byteLength + (task.kind === "logs" ? (task.receipts?.byteLength ?? 0) : 0);
    if (bytes > maxBytes) return checkInThread(node, body, task);
    if (task.kind === "json" && isJson(body)) return body;
    judge(checkBody(body, task), node);
    return body;
  };

  /** The header that the receipts of a block must fit; undefined where it is not to be had. */
  const headerOf = async (
    node: VerifiedNode,
    place: Place,
    context: RequestContext,
  ): Promise<ReceiptsHeader | undefined> => {
    const { hash, number } = place;
    const known = hash === undefined ? undefined : (headers.get(hash) ?? fromRing(hash, number, context.view.heads));
    if (known !== undefined) return known;
    if (hash === undefined && number === undefined) return undefined;
    const call =
      hash === undefined
        ? createCall("eth_getBlockByNumber", [formatQuantity(number ?? 0n), false])
        : createCall("eth_getBlockByHash", [hash, false]);
    const text = await node.send(call, context);
    return remember(await check(node.name, text, { kind: "block", place, computes: true }));
  };

  const fromRing = (hash: string, number: bigint | undefined, heads: Heads): ReceiptsHeader | undefined => {
    if (number === undefined || heads.at(number)?.hash !== hash) return undefined;
    const fields = heads.header(number);
    if (fields === undefined) return undefined;
    const body = Buffer.from(JSON.stringify({ ...fields, hash }));
    // What a node said of its head was not computed: a header that has another hash is read again.
    const findings = checkBody(body, { kind: "block", place: { hash, number }, computes: true });
    return findings.every(({ outcome }) => outcome === "passed") || evidence.isOff("header")
      ? remember(body)
      : undefined;
  };

  const remember = (body: Uint8Array): ReceiptsHeader | undefined => {
    const header = readReceiptsHeader(body);
    if (header !== undefined) headers.set(header.hash, header);
    return header;
  };

  const verifyReceipts = async (
    node: VerifiedNode,
    call: Call,
    question: RpcRequest,
    body: Uint8Array,
    context: RequestContext,
  ): Promise<Uint8Array> => {
    const task = taskOf(call, question, true);
    if (task.kind !== "receipts" || isNull({ body })) return check(node.name, body, task);
    const hash = readResponseBlock(body, "firstBlockHash")?.hash ?? question.block?.hash ?? task.place.hash;
    const place = { ...task.place, ...(hash !== undefined && { hash }) };
    const header = await headerOf(node, place, context);
    if (header === undefined) {
      throw new NodeError("missingData", node.name, `header not found: ${node.name} has receipts alone`, {
        code: CODES.SERVER,
      });
    }
    return check(node.name, body, { ...task, header });
  };

  return {
    level,
    bloomOf: ({ number, hash }, heads) =>
      level === "full" && !evidence.isOff("header")
        ? (headers.get(hash) ?? fromRing(hash, number, heads))?.logsBloom
        : undefined,
    provesReceipts: () =>
      level === "full" &&
      !evidence.isOff("header") &&
      !evidence.isOff("receipts") &&
      !evidence.isOff("depositReceipts"),
    check,
    verify: (node, call, question, body, context) => {
      if (level === "off") return body;
      if (question.write) return check(node.name, body, { kind: "json" });
      if (level === "full" && call.method === "eth_getBlockReceipts") {
        return verifyReceipts(node, call, question, body, context);
      }
      return check(node.name, body, taskOf(call, question, level === "full"));
    },
  };
};
