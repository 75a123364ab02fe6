import type { RpcResponse } from "../core/rpcSource.ts";
import type { View } from "../core/view.ts";
import type { Hash } from "../ethereum/hex.ts";
import { createCall } from "../jsonrpc/call.ts";
import { invalidParams, RpcError } from "../jsonrpc/rpcError.ts";
import { forwarded, type Method, type MethodInput } from "./method.ts";
import { isRecord, optional, type Parser, readData, readQuantity, required } from "./paramSpec.ts";
import { parseParams } from "./parseParams.ts";
import { viewResponse } from "./pendingReads.ts";

const MIN_TIMEOUT_MS = 6_000;
/** EIP-7966: the node accepted the transaction, and there is no receipt within the timeout. */
const NOT_CONFIRMED = 4;

const decoder = new TextDecoder();

/** Parses milliseconds, a number or a quantity. */
const readTimeout: Parser<number> = (value, name) => {
  const timeout = typeof value === "number" ? value : Number(readQuantity(value, name));
  if (!Number.isSafeInteger(timeout) || timeout < 0) throw invalidParams(`invalid ${name}: want whole milliseconds`);
  return timeout;
};

const params = [required("transaction", readData), optional("timeout", readTimeout)] as const;

/** Sends a transaction, and returns its receipt when it is pre-confirmed or sealed (EIP-7966). */
export const eth_sendRawTransactionSync: Method = {
  name: "eth_sendRawTransactionSync",
  kept: "never",
  atPending: "view",
  answer: async (asked) => {
    const { chain, call, context } = asked;
    const [raw, requestedMs] = parseParams(call.params, params);
    const maxMs = Math.max(MIN_TIMEOUT_MS, 2 * chain.heads.blockTimeMs);
    const timeoutMs = typeof requestedMs === "number" ? requestedMs : maxMs;
    if (timeoutMs > maxMs) throw invalidParams(`time out too long, timeout: ${timeoutMs} ms, max: ${maxMs} ms`);
    const sent = await forwarded({ ...asked, call: createCall("eth_sendRawTransaction", [raw]), context });
    chain.accepted(String(raw));
    const hash: Hash = `0x${hashIn(sent).slice(2)}`;
    return waitForReceipt(asked, hash, timeoutMs);
  },
};

const hashIn = ({ body }: RpcResponse): string =>
  body instanceof Uint8Array ? String(JSON.parse(decoder.decode(body))) : "";

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
  const { signal, clientId, deadlineMs } = context;
  const question = { ...call, retention: "never", canonicalParams: "" } as const;
  const answer = await chain.reads.request(question, { view, signal, clientId, deadlineMs, bypassCache: true });
  if (!(answer.body instanceof Uint8Array)) return undefined;
  const receipt: unknown = JSON.parse(decoder.decode(answer.body));
  return isRecord(receipt) && typeof receipt.blockHash === "string" ? answer : undefined;
};

/** Checks the current view and each new one. No other method uses more than one view. */
const waitForReceipt = (asked: MethodInput, hash: Hash, timeoutMs: number): Promise<RpcResponse> => {
  const { promise, resolve, reject } = Promise.withResolvers<RpcResponse>();
  let head = "";
  const check = (view: View): void => {
    const preconfirmed = inView(view, hash);
    if (preconfirmed) resolve(preconfirmed);
    if (preconfirmed || view.heads.latest.hash === head) return;
    head = view.heads.latest.hash;
    readSealedReceipt(asked, hash, view).then(
      (answer) => answer && resolve(answer),
      // The next head repeats the read.
      () => undefined,
    );
  };
  const onTimeout = () =>
    reject(
      new RpcError(
        NOT_CONFIRMED,
        `Transaction ${hash} was added to the mempool but wasn't confirmed within ${timeoutMs}ms.`,
      ),
    );
  const timer = setTimeout(onTimeout, timeoutMs);
  const unsubscribe = asked.chain.subscribe(({ view }) => check(view));
  check(asked.context.view);
  return promise.finally(() => {
    clearTimeout(timer);
    unsubscribe();
  });
};
