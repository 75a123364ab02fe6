import { parsedResult, type RpcResponse } from "../core/rpcSource.ts";
import type { View } from "../core/view.ts";
import { type Hash, parseData } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import { isFields } from "../json/jsonBytes.ts";
import { createCall } from "../jsonrpc/call.ts";
import { CODES, invalidParams, RpcError } from "../jsonrpc/rpcError.ts";
import { sendTransaction } from "./eth_sendRawTransaction.ts";
import type { Method, MethodInput } from "./method.ts";
import { hexOf, optional, type Parser, parseParams, readData, readQuantity, required } from "./paramSpec.ts";
import { viewResponse } from "./pendingReads.ts";

const MIN_TIMEOUT_MS = 6_000;

/** Parses milliseconds, a number or a quantity. */
const readTimeout: Parser<number> = (value, name) => {
  const timeout = typeof value === "number" ? value : Number(readQuantity(value, name));
  if (!Number.isSafeInteger(timeout) || timeout < 0) {
    throw invalidParams(`invalid ${name}: want whole milliseconds`);
  }
  return timeout;
};

const params = [required("transaction", readData), optional("timeout", readTimeout)] as const;

/** Sends a transaction, and returns its receipt when it is pre-confirmed or sealed (EIP-7966). */
export const eth_sendRawTransactionSync: Method = {
  name: "eth_sendRawTransactionSync",
  retention: "never",
  atPending: "view",
  handle: async (input) => {
    const { chain, call, context } = input;
    const [raw, requestedMs] = parseParams(call.params, params);
    const maxMs = Math.max(MIN_TIMEOUT_MS, 2 * chain.heads.blockTimeMs);
    const timeoutMs = typeof requestedMs === "number" ? requestedMs : maxMs;
    if (timeoutMs > maxMs) {
      throw invalidParams(`time out too long, timeout: ${timeoutMs} ms, max: ${maxMs} ms`);
    }
    const request = { ...input, call: createCall("eth_sendRawTransaction", [raw]), context };
    let sent: RpcResponse;
    try {
      sent = await sendTransaction(request, String(raw));
    } catch (error) {
      const known = await findReceipt(input, keccak256Hex(parseData(hexOf(raw))));
      if (known === undefined) {
        throw error;
      }
      return known;
    }
    const hash: Hash = `0x${hashIn(sent).slice(2)}`;
    return waitForReceipt(input, hash, timeoutMs);
  },
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

/** Checks the current view and each new one. No other method uses more than one view. */
const waitForReceipt = (input: MethodInput, hash: Hash, timeoutMs: number): Promise<RpcResponse> => {
  const { promise, resolve, reject } = Promise.withResolvers<RpcResponse>();
  let head = "";
  const check = (view: View): void => {
    const preconfirmed = inView(view, hash);
    if (preconfirmed) {
      resolve(preconfirmed);
    }
    if (preconfirmed || view.heads.latest.hash === head) {
      return;
    }
    head = view.heads.latest.hash;
    readSealedReceipt(input, hash, view).then(
      (response) => response && resolve(response),
      // The next head repeats the read.
      () => undefined,
    );
  };
  const onTimeout = () =>
    reject(
      new RpcError(
        CODES.NOT_CONFIRMED,
        `Transaction ${hash} was added to the mempool but wasn't confirmed within ${timeoutMs}ms.`,
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
