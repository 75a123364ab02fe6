import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { until } from "../../../support/clients/until.ts";
import { freePort } from "../../../support/servers/ports.ts";
import { type Endpoint, npm, type Results, runProgram, startProgram } from "./clientProgram.ts";
import { ACCOUNT, CONTRACT } from "./clientWork.ts";

/** The files of a project that indexes one event and each block with a balance. */
const PROJECT = {
  "ponder.config.ts": `import { createConfig } from "ponder";
const address = (name: string, indexed = true) => ({ name, type: "address", indexed }) as const;
const inputs = [address("from"), address("to"), { name: "value", type: "uint256", indexed: false }] as const;
const { DATA, RPC_URL, WS_URL } = process.env;
export default createConfig({
  database: { kind: "pglite", directory: DATA },
  chains: { anvil: { id: 31337, rpc: RPC_URL, ws: WS_URL, disableCache: true } },
  contracts: {
    Token: { chain: "anvil", abi: [{ type: "event", name: "Transfer", inputs }], address: "${CONTRACT}", startBlock: 0 },
  },
  blocks: { Every: { chain: "anvil", startBlock: 0, interval: 1 } },
});`,
  "ponder.schema.ts": `import { onchainTable } from "ponder";
export const transfer = onchainTable("transfer", (t) => ({ id: t.text().primaryKey(), to: t.hex(), hash: t.hex() }));
export const block = onchainTable("block", (t) => ({ number: t.bigint().primaryKey(), hash: t.hex(), balance: t.bigint() }));`,
  "src/index.ts": `import { ponder } from "ponder:registry";
import { block, transfer } from "ponder:schema";
ponder.on("Token:Transfer", async ({ event, context }) => {
  await context.db.insert(transfer).values({ id: event.id, to: event.args.to, hash: event.transaction.hash });
});
ponder.on("Every:block", async ({ event, context }) => {
  const balance = await context.client.getBalance({ address: "${ACCOUNT}" });
  await context.db.insert(block).values({ number: event.block.number, hash: event.block.hash, balance });
});`,
  "src/api/index.ts": `import { Hono } from "hono";
import { graphql } from "ponder";
import { db } from "ponder:api";
import schema from "ponder:schema";
export default new Hono().use("/graphql", graphql({ db, schema }));`,
};

export const installPonder = async (folder: string): Promise<void> => {
  await npm(folder, "ponder@0.16", "viem@2", "hono@4");
  await mkdir(join(folder, "src", "api"), { recursive: true });
  for (const [file, text] of Object.entries(PROJECT)) {
    await writeFile(join(folder, file), `${text}\n`);
  }
};

const QUERY = '{ blocks(orderBy: "number") { items { number hash balance } } transfers { items { id to hash } } }';

/** Indexes the chain, then the block of a transaction that viem sends through the same endpoint. */
export const indexWithPonder = async (folder: string, { url, wsUrl }: Endpoint): Promise<Results> => {
  const port = await freePort();
  const cli = join(folder, "node_modules/ponder/dist/esm/bin/ponder.js");
  const data = await mkdtemp(join(folder, "data-"));
  const args = [cli, "start", "--port", String(port), "--schema", "one", "--log-format", "json"];
  const environment = { DATA: data, RPC_URL: url, WS_URL: wsUrl, PONDER_TELEMETRY_DISABLED: "true" };
  const ponder = await startProgram(process.execPath, args, {
    cwd: folder,
    ready: /(Started live indexing)/,
    environment,
  });
  const rows = async (): Promise<string> => {
    const body = JSON.stringify({ query: QUERY });
    const headers = { "content-type": "application/json" };
    return (await fetch(`http://127.0.0.1:${port}/graphql`, { method: "POST", headers, body })).text();
  };
  try {
    await runProgram(process.execPath, [join(import.meta.dirname, "viem.ts"), url, wsUrl], folder);
    let last = "";
    const has = async (number: number) => {
      last = await rows();
      return last.includes(`"number":"${number}"`);
    };
    await until(() => has(4), "Ponder has the block of the transaction");
    return { "rows of blocks and logs": last };
  } finally {
    await ponder.end();
  }
};
