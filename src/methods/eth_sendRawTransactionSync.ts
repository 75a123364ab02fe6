import { parsedResult, type RpcResponse } from "../core/rpcSource.ts";
import type { View } from "../core/view.ts";
import { type Hash, isQuantity, parseData } from "../ethereum/hex.ts";
import { presumedTransactionHash } from "../ethereum/rawTransactionHash.ts";
import { isFields } from "../json/jsonBytes.ts";
import { createCall } from "../jsonrpc/call.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { SentTransaction } from "../pending/submittedTransaction.ts";
import { sendTransaction } from "./eth_sendRawTransaction.ts";
import type { Method, MethodInput } from "./method.ts";
import { hexOf, optional, parseParams, readAny, readData, required } from "./paramSpec.ts";
import { viewResponse } from "./pendingReads.ts";
import { findSubmissionFault } from "./submissionFault.ts";
import { requireSendable } from "./unsendable.ts";

const MIN_TIMEOUT_MS = 6_000;

const params = [required("transaction", readData), optional("timeout", readAny)] as const;

/** Returns a timeout in milliseconds: a number or a quantity. Without a valid one, it is the longest (EIP-7966). */
const timeoutOf = (value: unknown, maxMs: number): number => {
  const timeout = typeof value === "number" || isQuantity(value) ? Number(value) : Number.NaN;
  return Number.isSafeInteger(timeout) && timeout > 0 && timeout <= maxMs ? timeout : maxMs;
};

/** Sends a transaction, and returns its receipt when it is pre-confirmed or sealed (EIP-7966). */
export const eth_sendRawTransactionSync: Method = {
  name: "eth_sendRawTransactionSync",
  retention: "never",
  atPending: "view",
  handle: async (input) => {
    const { chain, call } = input;
    const [raw, requestedMs] = parseParams(call.params, params);
    const timeoutMs = timeoutOf(requestedMs, Math.max(MIN_TIMEOUT_MS, 2 * chain.heads.blockTimeMs));
    const { receipt, ...waiting } = await submitOrFind(input, String(raw));
    return receipt ?? waitForReceipt(input, waiting, timeoutMs);
  },
};

/** Sends a transaction. Rejects if the nodes refuse it, unless that is because it is sealed or pre-confirmed already. */
export const submitOrFind = async (input: MethodInput, raw: string): Promise<Submitted> => {
  requireSendable(input.chain, raw);
  const request = { ...input, call: createCall("eth_sendRawTransaction", [raw]) };
  try {
    const { response, submitted } = await sendTransaction(request, raw);
    return { hash: `0x${hashIn(response).slice(2)}`, transaction: submitted?.sent, receipt: undefined };
  } catch (error) {
    const hash = presumedTransactionHash(parseData(hexOf(raw)));
    const receipt = await findReceipt(input, hash);
    if (receipt === undefined) {
      throw error;
    }
    return { hash, transaction: undefined, receipt };
  }
};

/** Returns the receipt of a transaction that nodes refuse because it is sealed or pre-confirmed already. */
const findReceipt = async (input: MethodInput, hash: Hash): Promise<RpcResponse | undefined> => {
  const { view } = input.context;
  return inView(view, hash) ?? readSealedReceipt(input, hash, view).catch(() => undefined);
};

const hashIn = (response: RpcResponse): string => String(parsedResult(response) ?? "");

const inView = ({ pending }: View, hash: Hash): RpcResponse | undefined => {
  const location = pending?.find(hash);
  const body = location?.block.receipt(location.index);
  return body && pending ? { ...viewResponse(body), pending: pending.mode } : undefined;
};

/** Reads the receipt of a sealed transaction from a node. If there is none, the next head repeats the read. */
const readSealedReceipt = async (
  { chain, context }: MethodInput,
  hash: Hash,
  view: View,
): Promise<RpcResponse | undefined> => {
  const call = createCall("eth_getTransactionReceipt", [hash]);
  const request = { ...call, retention: "never", canonicalParams: "" } as const;
  // The transaction is sent: without room in the memory budget, its receipt is read all the same.
  const response = await chain.nodes.request(request, context.with({ view, bypassCache: true }));
  const receipt = parsedResult(response);
  return isFields(receipt) && typeof receipt.blockHash === "string" ? response : undefined;
};

/** A transaction that a node accepted. */
interface Waiting {
  readonly hash: Hash;
  /** Undefined if forebay cannot parse it. */
  readonly transaction: SentTransaction | undefined;
}

interface Submitted extends Waiting {
  /** Of a transaction that is sealed or pre-confirmed already. */
  readonly receipt: RpcResponse | undefined;
}

/** Checks the current view and each new one. No other method uses more than one view. */
const waitForReceipt = (
  input: MethodInput,
  { hash, transaction }: Waiting,
  timeoutMs: number,
): Promise<RpcResponse> => {
  const { promise, resolve, reject } = Promise.withResolvers<RpcResponse>();
  /** Most transactions are in the next block. The others may wait for something. */
  const judge = async (view: View, isNextBlock: boolean): Promise<void> => {
    const response = await readSealedReceipt(input, hash, view);
    if (response !== undefined) {
      resolve(response);
    } else if (isNextBlock && transaction !== undefined) {
      const ofView = { ...input, context: input.context.with({ view }) };
      const fault = await findSubmissionFault(ofView, transaction, hash);
      if (fault !== undefined) {
        reject(fault);
      }
    }
  };
  let head = "";
  let heads = 0;
  const check = (view: View): void => {
    const preconfirmed = inView(view, hash);
    if (preconfirmed) {
      resolve(preconfirmed);
    }
    if (preconfirmed || view.heads.latest.hash === head) {
      return;
    }
    heads++;
    head = view.heads.latest.hash;
    // The next head repeats the read.
    judge(view, heads === 2).catch(() => undefined);
  };
  const onTimeout = () =>
    reject(
      new RpcError(
        CODES.NOT_CONFIRMED,
        `Transaction ${hash} was added to the mempool but wasn't confirmed within ${timeoutMs}ms.`,
        { data: hash },
      ),
    );
  const timer = setTimeout(onTimeout, timeoutMs);
  const unsubscribe = input.chain.subscribe(({ view }) => check(view));
  check(input.context.view);
  return promise.finally(() => {
    clearTimeout(timer);
    unsubscribe();
  });
};
