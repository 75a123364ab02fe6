import type { Data, Hash } from "../ethereum/hex.ts";
import { submitOrFind } from "./eth_sendRawTransactionSync.ts";
import type { Method, MethodInput } from "./method.ts";

/** The client needs the rights to send a transaction, too. */
const submit = async (input: MethodInput, raw: Data): Promise<Hash> => {
  await input.context.caller.authorize?.("eth_sendRawTransaction");
  return (await submitOrFind(input, raw)).hash;
};

/** Begins a subscription. That to the inclusion of a transaction may send the transaction (EIP-8072). */
export const eth_subscribe: Method = {
  name: "eth_subscribe",
  retention: "never",
  atPending: "none",
  prove: "atDelivery",
  handle: (input) => input.chain.subscriptions.subscribe(input.call, input.context, (raw) => submit(input, raw)),
};
