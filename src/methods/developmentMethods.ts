import type { RpcResponse } from "../core/rpcSource.ts";
import { forwarded, type MethodInput } from "./method.ts";

/** The namespaces of anvil, Hardhat, ganache and Tenderly whose methods can change state inside a block, such as `anvil_setBalance`. */
const DEVELOPMENT_METHOD = /^(?:anvil|hardhat|evm|ganache|tenderly)_/;

export const isDevelopmentMethod = (method: string): boolean => DEVELOPMENT_METHOD.test(method);

/** Forwards a call that can change state without a block. Values from before its end are dropped. */
export const forwardDevelopmentCall = async (input: MethodInput): Promise<RpcResponse> => {
  const { state } = input.chain;
  state?.forget();
  try {
    return await forwarded(input);
  } finally {
    state?.forget();
  }
};
