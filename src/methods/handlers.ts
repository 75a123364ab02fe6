import type { Context } from "../core/context.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { Handler } from "../jsonrpc/dispatch.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { forwarded, type MethodChain, type MethodInput, type Prove } from "./method.ts";
import type { NotProvenReason } from "./proofRules.ts";
import { createProver } from "./prove.ts";
import { createRefusedMethods } from "./refusedMethods.ts";
import { table } from "./table.ts";
import { rawTransactionsOf, requireSendable } from "./unsendable.ts";

/** The namespaces of anvil, Hardhat, ganache and Tenderly whose methods can change state inside a block, such as `anvil_setBalance`. */
const DEVELOPMENT_METHOD = /^(?:anvil|hardhat|evm|ganache|tenderly)_/;

const isDevelopmentMethod = (method: string): boolean => DEVELOPMENT_METHOD.test(method);

/** Forwards a call that can change state without a block. Values from before its end are dropped. */
const forwardDevelopmentCall = async (input: MethodInput): Promise<RpcResponse> => {
  const { chain } = input;
  chain.forgetState();
  try {
    return await forwarded(input);
  } finally {
    chain.forgetState();
  }
};

/** Methods of single providers and clients that send raw transactions, such as `eth_sendRawTransactionConditional`. */
const RAW_SEND = /^eth_send(?:(?:Private)?Raw|PrivateTransaction$|Bundle$)/;

const methodNames: ReadonlySet<string> = new Set(table.map(({ name }) => name));

export const isInTable = (method: string): boolean => methodNames.has(method);

/** Returns the metric label of a method: its name if it is in the table, `other` if not. */
export const methodLabel = (method: string): string => (isInTable(method) ? method : "other");

const quickNames: ReadonlySet<string> = new Set(table.filter(({ isSlow }) => !isSlow).map(({ name }) => name));

/** Whether a method may share an HTTP request to a node with others. A method outside the table may be anything. */
export const isQuickMethod = (method: string): boolean => quickNames.has(method);

const notAllowed = (method: string): RpcError =>
  new RpcError(
    CODES.METHOD_NOT_FOUND,
    `the method ${method} is not allowed here: it can write to a node or use its accounts`,
  );

export interface Handlers {
  lookup(method: string): Handler<Context, RpcResponse> | undefined;
  readonly forward: Handler<Context, RpcResponse>;
}

/**
 * Creates the handlers of one chain's methods. Methods that write to a node or unlock accounts are rejected, unless
 * `allowed` has their namespace or name. A client that requires proven answers gets no others; `onNotProven` counts them.
 */
export const createHandlers = (
  chain: MethodChain,
  allowed: readonly string[],
  onNotProven: (reason: NotProvenReason) => void,
): Handlers => {
  const isRefused = createRefusedMethods(allowed);
  const forward: Handlers["forward"] = (call, context) => {
    if (isRefused(call.method)) {
      throw notAllowed(call.method);
    }
    if (RAW_SEND.test(call.method)) {
      for (const raw of rawTransactionsOf(call.params[0])) {
        requireSendable(chain, raw);
      }
    }
    const input = { chain, call, context };
    return isDevelopmentMethod(call.method) ? forwardDevelopmentCall(input) : forwarded(input);
  };
  const runs = new Map(
    table.map(({ name, handle }): [string, Handlers["forward"]] => [
      name,
      (call, context) => handle({ chain, call, context }),
    ]),
  );
  const prove = createProver(chain, (call, context) => (runs.get(call.method) ?? forward)(call, context), onNotProven);
  const proving =
    (run: Handlers["forward"], by: Prove = "never"): Handlers["forward"] =>
    (call, context) =>
      context.needs === "proven" ? prove(call, by, context) : run(call, context);
  const handlers = new Map(table.map(({ name, prove: by }) => [name, proving(runs.get(name) ?? forward, by)]));
  return { lookup: (method) => handlers.get(method), forward: proving(forward) };
};
