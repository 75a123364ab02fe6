import type { TestContext } from "node:test";
import { createProcess } from "../../src/app/main.ts";
import { configSchema } from "../../src/config/schema.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";

interface Readyz {
  readonly status: number;
  readonly ready: boolean;
  readonly draining: boolean;
  readonly chains: readonly {
    readonly name: string;
    readonly ready: boolean;
    readonly serving: boolean;
    readonly reason?: string;
    readonly nodes?: Readonly<Record<string, string>>;
  }[];
}

/** Asks whether a service is ready. */
export const readyz = async (opsUrl: string, query = ""): Promise<Readyz> => {
  const response = await fetch(`${opsUrl}/readyz${query}`);
  const body: Omit<Readyz, "status"> = JSON.parse(await response.text());
  return { status: response.status, ...body };
};

export const startNode = async (t: TestContext): Promise<FakeNode> => {
  const node = await createFakeNode();
  t.after(() => node.close());
  return node;
};

/** Starts a service without waiting for the chains, because a chain may never become known. */
export const start = async (t: TestContext, nodes: Readonly<Record<string, string>>, server: object = {}) => {
  const config = configSchema.parse({
    chains: Object.entries(nodes).map(([name, url]) => ({ name, nodes: [{ url }] })),
    server: { port: 0, opsPort: 0, drainDelayMs: 0, ...server },
    log: { level: "silent" },
  });
  const forebay = await createProcess(config, createTelemetry({ level: "silent" }));
  t.after(() => forebay.close());
  return forebay;
};

export const UNREACHABLE = "http://127.0.0.1:1/";
