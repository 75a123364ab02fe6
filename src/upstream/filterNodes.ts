import type { Answer, Question } from "../chain/source.ts";
import { asText } from "./jsonScan.ts";

const MAKES = new Set(["eth_newFilter", "eth_newBlockFilter", "eth_newPendingTransactionFilter"]);
const USES = new Set(["eth_getFilterChanges", "eth_getFilterLogs", "eth_uninstallFilter"]);
const MAX_FILTERS = 100_000;

/** A filter lives in the node that made it. */
export interface FilterNodes {
  /** The name of the node that a question must go to. */
  nodeOf(question: Question): string | undefined;
  learn(question: Question, answer: Answer): void;
}

export const createFilterNodes = (): FilterNodes => {
  const nodes = new Map<string, string>();
  return {
    nodeOf: ({ method, params: [id] }) => (USES.has(method) && typeof id === "string" ? nodes.get(id) : undefined),
    learn: ({ method, params: [id] }, { body, node }) => {
      if (MAKES.has(method) && body instanceof Uint8Array && node !== undefined) {
        nodes.set(asText(body).replaceAll('"', ""), node);
        const [oldest] = nodes.keys();
        if (nodes.size > MAX_FILTERS && oldest !== undefined) {
          nodes.delete(oldest);
        }
      } else if (method === "eth_uninstallFilter" && typeof id === "string") {
        nodes.delete(id);
      }
    },
  };
};
