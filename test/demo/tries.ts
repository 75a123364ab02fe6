import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { SEQUENCER_FEE_VAULT } from "../devnet/l1Attributes.ts";
import { devAccounts } from "../devnet/traffic.ts";
import { HISTORY_QUERY } from "./historyNode.ts";
import type { Stack } from "./stack.ts";

/** A command for the reader. */
export interface Try {
  readonly title: string;
  readonly command: string;
}

/** A command that the demo ran. */
export interface Tried extends Try {
  readonly answer: string;
}

const MAX_ANSWER = 150;

const curl = (url: string, method: string, params: readonly unknown[], flags = "-s"): string => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  return `curl ${flags} -H content-type:application/json ${url} -d '${body}'`;
};

/** Returns one command for each headline. */
export const createTries = ({
  url,
  historyUrl,
  opsUrl,
}: Pick<Stack, "url" | "historyUrl" | "opsUrl">): readonly Try[] => {
  const [from, to] = devAccounts.map(({ address }) => address);
  const calls = [{ from, to, value: "0x1" }];
  return [
    {
      title: "a read that wallets repeat asks no node",
      command: `${curl(url, "eth_getBalance", [from, "latest"], "-si")} | grep -i cache-status`,
    },
    {
      title: "wide log queries work: the number of logs in 50,000 blocks",
      command: `${curl(historyUrl, "eth_getLogs", [HISTORY_QUERY])} | grep -o blockHash | wc -l`,
    },
    {
      title: "pending is milliseconds old: the fees of the block under construction grow with each flashblock",
      command: curl(url, "eth_getBalance", [SEQUENCER_FEE_VAULT, "pending"]),
    },
    {
      title: "simulations run here",
      command: `${curl(url, "eth_simulateV1", [{ blockStateCalls: [{ calls }] }, "latest"])} | grep -o '"gasUsed":"[^"]*"' | head -1`,
    },
    {
      title: "the bill, saved and spent",
      command: `curl -s '${opsUrl}/usage?top=1' | grep -E '(calls|savedCalls|units)":' | head -3`,
    },
  ];
};

/** Runs a command in a shell. */
export const runTry = async (each: Try): Promise<Tried> => {
  const { stdout } = await promisify(execFile)("bash", ["-c", each.command]).catch((error: unknown) => ({
    stdout: `no answer: ${String(error)}`,
  }));
  const answer = stdout.trim().replaceAll(/\s+/g, " ");
  return { ...each, answer: answer.length > MAX_ANSWER ? `${answer.slice(0, MAX_ANSWER)}...` : answer };
};
