import type { ChainConfig } from "../config/schema.ts";
import { isFields } from "../json/jsonBytes.ts";
import { CODES } from "../jsonrpc/rpcError.ts";
import { isInTable } from "../methods/handlers.ts";
import { createRefusedMethods } from "../methods/refusedMethods.ts";
import { CHECK_TIMEOUT_MS, type CheckResult } from "./checkResult.ts";
import { requestOnce } from "./requestResult.ts";

/** Whether the node may have the method: it does not say that it lacks it. Its parameters are not known here. */
const mayHave = async (node: ChainConfig["nodes"][number], method: string): Promise<boolean> => {
  const call = { jsonrpc: "2.0", id: 1, method, params: [] };
  const { response } = await requestOnce(node, call, CHECK_TIMEOUT_MS).catch(() => ({ response: undefined }));
  const error = isFields(response) ? response.error : undefined;
  return !isFields(error) || error.code !== CODES.METHOD_NOT_FOUND;
};

/** Reports the methods of `customMethods` that change nothing, or that no node has. Never rejects. */
export const checkCustomMethods = async (chain: ChainConfig): Promise<readonly CheckResult[]> => {
  const { customMethods, allowNamespaces, nodes } = chain;
  const isRefused = createRefusedMethods(allowNamespaces);
  const faultOf = async (name: string): Promise<string | undefined> => {
    if (isInTable(name)) {
      return "has no effect: the table of methods (docs/methods.md) has it";
    }
    if (isRefused(name)) {
      return "has no effect: the method is refused (chains[].allowNamespaces)";
    }
    return (await Promise.all(nodes.map((node) => mayHave(node, name)))).includes(true) ? undefined : "is on no node";
  };
  const results = customMethods.map(async ({ name, retention }): Promise<CheckResult> => {
    const subject = `${chain.name} customMethods`;
    const fault = await faultOf(name);
    return fault === undefined
      ? { subject, level: "ok", text: `${name} is cached as \`${retention}\`` }
      : { subject, level: "warn", text: `${name} ${fault}` };
  });
  return Promise.all(results);
};
