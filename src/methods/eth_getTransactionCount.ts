import type { RpcResponse } from "../core/rpcSource.ts";
import { type Address, formatQuantity } from "../ethereum/hex.ts";
import { stateBlock } from "./blockParams.ts";
import { blockRead } from "./blockRead.ts";
import { stateRead } from "./blockReadSpec.ts";
import type { Method, MethodInput } from "./method.ts";
import { readAddress, required } from "./paramSpec.ts";
import { nonceIn, orFailedPending, readPendingNonce, viewResponse } from "./pendingReads.ts";

const name = "eth_getTransactionCount";

const read = blockRead({
  name,
  params: [required("address", readAddress), stateBlock],
  kind: "state",
  stateRead: stateRead(name, "nonce"),
  prove: { byProof: "nonce" },
  pending: readPendingNonce,
});

/** Raises a nonce at `pending` above the transactions that nodes accepted through forebay. */
const raiseNonce = async (input: MethodInput, response: RpcResponse): Promise<RpcResponse> => {
  const { chain, context } = input;
  const { pending } = response;
  // By the hash of a pending block, it is the nonce of that block's state.
  if (pending === undefined || input.call.params[1] !== "pending") {
    return response;
  }
  const address = readAddress(input.call.params[0], "address");
  const found = nonceIn(response);
  const sender: Address = `0x${address.slice(2)}`;
  const nonce = context.view.pending?.nonce(sender, found) ?? found;
  const raised = await orFailedPending(pending, chain.advanceNonce(sender, nonce), context);
  return { ...(raised === found ? response : viewResponse(formatQuantity(raised))), pending };
};

/**
 * Returns the account's nonce, a quantity (docs/methods.md, State at pending).
 * At `pending`, it is raised above the transactions that nodes accepted through forebay.
 */
export const eth_getTransactionCount: Method = {
  ...read,
  handle: (given) => {
    // A client that wants confirmations must not use a nonce twice, so that its own transactions count at once.
    const isActual = given.call.params[1] === "pending" && given.context.behind !== undefined;
    const input = isActual ? { ...given, context: given.context.withoutConfirmations() } : given;
    const response = read.handle(input);
    // A response at `pending` is always a promise.
    return response instanceof Promise ? response.then((known) => raiseNonce(input, known)) : response;
  },
};
