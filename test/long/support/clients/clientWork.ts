/** The first account of anvil, which has a balance and is unlocked. */
export const KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
export const ACCOUNT = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
/** The contract that account creates first. */
export const CONTRACT = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
/** Creates a contract without code, and writes a log: Transfer from address 1 to address 2. */
export const DEPLOYMENT = "0x600260017fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef60206000a300";
/** The contract that returns its input. */
export const IDENTITY = "0x0000000000000000000000000000000000000004";
export const INPUT = "0x0102030405";
export const GAS = 100_000;
export const MAX_FEE = 3_000_000_000;
export const PRIORITY_FEE = 1_000_000_000;
const MAX_WAIT_MS = 20_000;

type Steps = Readonly<Record<string, (url: string, wsUrl: string) => unknown>>;

const formatResult = (result: unknown): string =>
  JSON.stringify(result, (_, value: unknown) => (typeof value === "bigint" ? `${value}` : value)) ?? "undefined";

/** Runs steps one after the other at the URLs of the arguments, prints their results or errors as JSON, and ends. */
export const printSteps = async (steps: Steps): Promise<never> => {
  const [, , url = "", wsUrl = ""] = process.argv;
  const results: Record<string, string> = {};
  for (const [name, run] of Object.entries(steps)) {
    const timeout = Promise.withResolvers<never>();
    const timer = setTimeout(() => timeout.reject(new Error(`no result within ${MAX_WAIT_MS} ms`)), MAX_WAIT_MS);
    try {
      results[name] = formatResult(await Promise.race([run(url, wsUrl), timeout.promise]));
    } catch (error) {
      results[name] = `error: ${error instanceof Error ? error.message : formatResult(error)}`;
    }
    clearTimeout(timer);
  }
  await new Promise((resolve) => process.stdout.write(`${JSON.stringify(results)}\n`, resolve));
  process.exit(0);
};
