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
/** EIP-7966: the transaction was taken, its receipt did not come in time. */
const NOT_CONFIRMED = 4;

const decoder = new TextDecoder();

/** Milliseconds, as a number or a quantity. */
const readTimeout: Parser<number> = (value, name) => {
  const timeout = typeof value === "number" ? value : Number(readQuantity(value, name));
  if (!Number.isSafeInteger(timeout) || timeout < 0) throw invalidParams(`invalid ${name}: want whole milliseconds`);
  return timeout;
};

const params = [required("transaction", readData), optional("timeout", readTimeout)] as const;

/** EIP-7966: sends, and answers with the receipt as soon as the transaction is pre-confirmed, or sealed. */
export const eth_sendRawTransactionSync: Method = {
  name: "eth_sendRawTransactionSync",
  kept: "never",
  atPending: "view",
  answer: async (asked) => {
    const { chain, call, context } = asked;
    const [raw, given] = parseParams(call.params, params);
    const maxMs = Math.max(MIN_TIMEOUT_MS, 2 * chain.heads.blockTimeMs);
    const timeoutMs = typeof given === "number" ? given : maxMs;
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
  const found = pending?.find(hash);
  const body = found?.block.receipt(found.index);
  return body && pending ? { ...viewResponse(body), pending: pending.mode } : undefined;
};

/** A node's receipt, where it is sealed; a node that does not know it yet is asked again with the next head. */
const onNode = async ({ chain, context }: MethodInput, hash: Hash, view: View): Promise<RpcResponse | undefined> => {
  const call = createCall("eth_getTransactionReceipt", [hash]);
  const { signal, clientId, deadlineMs } = context;
  const question = { ...call, retention: "never", canonicalParams: "" } as const;
  const answer = await chain.reads.request(question, { view, signal, clientId, deadlineMs, bypassCache: true });
  if (!(answer.body instanceof Uint8Array)) return undefined;
  const receipt: unknown = JSON.parse(decoder.decode(answer.body));
  return isRecord(receipt) && typeof receipt.blockHash === "string" ? answer : undefined;
};

/** Looks at every view that comes; the one method that reads more than one. */
const waitForReceipt = (asked: MethodInput, hash: Hash, timeoutMs: number): Promise<RpcResponse> => {
  const { promise, resolve, reject } = Promise.withResolvers<RpcResponse>();
  let head = "";
  const look = (view: View): void => {
    const found = inView(view, hash);
    if (found) resolve(found);
    if (found || view.heads.latest.hash === head) return;
    head = view.heads.latest.hash;
    onNode(asked, hash, view).then(
      (answer) => answer && resolve(answer),
      () => {
        // Whoever answers next may know it.
      },
    );
  };
  const late = () =>
    reject(
      new RpcError(
        NOT_CONFIRMED,
        `Transaction ${hash} was added to the mempool but wasn't confirmed within ${timeoutMs}ms.`,
      ),
    );
  const timer = setTimeout(late, timeoutMs);
  const stop = asked.chain.subscribe(({ view }) => look(view));
  look(asked.context.view);
  return promise.finally(() => {
    clearTimeout(timer);
    stop();
  });
};
