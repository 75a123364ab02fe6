import { FakeError } from "./front.ts";

/** Texts that count against a node if they are its own. */
export const TEXTS = [
  "unauthorized",
  "payment required",
  "rate_limit",
  "too many requests",
  "you have reached the free tier limit",
  "the service is temporarily unavailable",
  "no backend is currently healthy to serve traffic",
  "missing trie node",
] as const;

/** Calls whose errors quote the client or a contract, as geth, reth and anvil write them. */
export const QUOTES: Record<
  string,
  { readonly params: (text: string) => unknown[]; readonly error: (text: string) => FakeError }
> = {
  trace_filter: {
    params: (text) => [{ [text]: 1 }],
    error: (text) => new FakeError(-32_602, `unknown field \`${text}\`, expected one of \`fromBlock\``),
  },
  debug_traceCall: {
    params: (text) => [{ to: `0x${"1".repeat(40)}` }, "0x20", { tracer: text }],
    error: (text) => new FakeError(-32_000, `ReferenceError: ${text} is not defined at <eval>:1:1(0)`),
  },
  debug_traceTransaction: {
    params: (text) => [`0x${"2".repeat(64)}`, { tracer: `{result: () => { throw '${text}' }, fault: () => 0}` }],
    error: (text) =>
      new FakeError(-32_000, `${text} at result (<eval>:1:58(3))    in server-side tracer function 'result'`),
  },
  eth_call: {
    params: () => [{ to: `0x${"3".repeat(40)}`, gas: "0x5208" }, "0x20"],
    error: (text) => new FakeError(-32_603, `EVM error: ${text}`),
  },
};

/**
 * Returns the handlers of a node that quotes its clients in the errors of these calls. `contractText`: the text that the contract
 * of `eth_call` returns.
 */
export const quotingHandlers = (
  contractText: () => string,
): Readonly<Record<string, (params: readonly unknown[]) => unknown>> =>
  Object.fromEntries(
    Object.entries(QUOTES).map(([method, { error }]) => [
      method,
      (params: readonly unknown[]) => {
        const sent = JSON.stringify(params);
        throw error(TEXTS.find((text) => sent.includes(text)) ?? contractText());
      },
    ]),
  );
