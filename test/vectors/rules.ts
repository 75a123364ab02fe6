import type { Exchange } from "./vectorFolder.ts";

/**
 * Intended differences between forebay and go-ethereum, with reasons. Rules match request and response, never the name of a vector.
 * All parts that a rule does not except are compared.
 */
export interface Rule {
  readonly reason: string;
  applies(exchange: Exchange, actual: Readonly<Record<string, unknown>>): boolean;
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const INVALID_PARAMS = -32602;
const codeOf = (response: Readonly<Record<string, unknown>>): unknown =>
  isRecord(response.error) ? response.error.code : undefined;

export const rules: readonly Rule[] = [
  {
    reason: "the contract's 2.3: with a blockHash the range is ignored, not refused",
    applies: ({ request, response }, actual) => {
      const filter = request.params?.[0];
      return (
        request.method === "eth_getLogs" &&
        isRecord(filter) &&
        filter.blockHash !== undefined &&
        (filter.fromBlock !== undefined || filter.toBlock !== undefined) &&
        codeOf(response) === INVALID_PARAMS &&
        Array.isArray(actual.result)
      );
    },
  },
  {
    reason: "our parameter checks name the parameter, geth's its position: both are -32602 with a text",
    applies: ({ response }, actual) =>
      codeOf(response) === INVALID_PARAMS &&
      codeOf(actual) === INVALID_PARAMS &&
      isRecord(response.error) &&
      /^invalid argument \d/.test(String(response.error.message)) &&
      isRecord(actual.error) &&
      /^invalid \w+/.test(String(actual.error.message)),
  },
];
