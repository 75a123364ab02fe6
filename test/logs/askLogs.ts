import { setImmediate } from "node:timers/promises";
import type { Node } from "../../src/core/node.ts";
import type { RpcResponse } from "../../src/core/rpcSource.ts";
import type { LogFilter } from "../../src/ethereum/logFilter.ts";
import { FairGate } from "../../src/limits/fairGate.ts";
import type { LogsOptions } from "../../src/logs/logsOptions.ts";
import { SplitLogs } from "../../src/logs/splitLogs.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { createMemoryStore } from "./memoryStore.ts";

export const ANY: LogFilter = { addresses: [], topics: [] };

export const createSplit = (nodes: readonly Node[], options: Partial<LogsOptions> = {}): SplitLogs =>
  new SplitLogs({
    chain: "test",
    agree: 1,
    nodes,
    store: createMemoryStore(),
    slots: new FairGate<Node>({ max: 32 }),
    clock: { nowMs: () => 0, sleep: () => setImmediate() },
    telemetry: createTelemetry({ level: "silent" }),
    ...options,
  });

const readText = async ({ body }: RpcResponse): Promise<string> => {
  if (body instanceof Uint8Array) {
    return Buffer.from(body).toString();
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
};

export const readLogs = async (answer: RpcResponse): Promise<unknown> => JSON.parse(await readText(answer));

export const range = (from: number, to: number) => ({ from: BigInt(from), to: BigInt(to) });
