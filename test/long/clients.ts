import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startAnvil } from "../devnet/anvil.ts";
import { createService } from "../support/servers/service.ts";
import type { Endpoint, Results } from "./support/clients/clientProgram.ts";
import { CLIENTS, type Client } from "./support/clients/clients.ts";
import { ACCOUNT } from "./support/clients/clientWork.ts";

/** A shorter run has only the clients that need no installation. */
const WHOLE_SECONDS = 60;
const EMPTY_BLOCKS = 2;
const SHOWN_CHARACTERS = 160;
/** The steps with the differences that docs/clients.md names. */
const KNOWN: ReadonlySet<string> = new Set(["newHead", "eth_sendTransaction"]);
/** The second account of anvil. */
const SENDER = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

/** Starts a chain for one run of a client. Equal calls give equal blocks: anvil mines with each transaction, a second later. */
const withChain = async (startSeconds: number, use: (endpoint: Endpoint) => Promise<Results>): Promise<Results> => {
  const anvil = await startAnvil(["--timestamp", String(startSeconds)]);
  try {
    await anvil.call("anvil_setBlockTimestampInterval", 1);
    for (let block = 0; block < EMPTY_BLOCKS; block++) {
      await anvil.mine("evm_mine");
    }
    await anvil.call("eth_sendTransaction", { from: SENDER, to: ACCOUNT, value: "0x1" });
    return await use({ url: anvil.url, wsUrl: anvil.url.replace("http", "ws"), startSeconds });
  } finally {
    await anvil.close();
  }
};

const throughForebay = async (client: Client, folder: string, endpoint: Endpoint): Promise<Results> => {
  const service = await createService({ nodes: [{ url: endpoint.url, wsUrl: endpoint.wsUrl }] });
  try {
    return await client.run(folder, { ...endpoint, url: service.url, wsUrl: service.url.replace("http", "ws") });
  } finally {
    await service.close();
  }
};

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const isMapping = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A result without what differs by chance: the port. */
const comparable = (text: string): string => text.replaceAll(/127\.0\.0\.1:\d+/g, "HOST");
const shown = (text = "none"): string => comparable(text).replaceAll(/\s+/g, " ").slice(0, SHOWN_CHARACTERS);

/** Describes how a result through forebay differs: by its members, or both as text. */
const describeDifference = (direct: string | undefined, through: string | undefined): string => {
  const [a, b] = [parsed(direct ?? ""), parsed(through ?? "")];
  if (!isMapping(a) || !isMapping(b)) {
    return `direct ${shown(direct)}, through forebay ${shown(through)}`;
  }
  const names = Object.keys({ ...a, ...b }).filter((name) => JSON.stringify(a[name]) !== JSON.stringify(b[name]));
  return names
    .map((name) => {
      const what = name in b ? `is ${shown(JSON.stringify(b[name]))}` : "is missing";
      return `${name} ${what}${name in a ? "" : ", and missing directly"}`;
    })
    .join("; ");
};

interface Row {
  readonly client: string;
  /** The number of steps, or why the client did not run. */
  readonly steps: number | string;
  readonly differences: readonly { readonly step: string; readonly text: string }[];
}

const reasonOf = (error: unknown): string => shown(error instanceof Error ? error.message : String(error));

const compare = async (client: Client, folder: string): Promise<Row> => {
  const startSeconds = Math.floor(Date.now() / 1_000);
  let direct: Results;
  try {
    await client.install?.(folder);
    direct = await withChain(startSeconds, (endpoint) => client.run(folder, endpoint));
  } catch (error) {
    return { client: client.name, steps: `not run: ${reasonOf(error)}`, differences: [] };
  }
  const through = await withChain(startSeconds, (endpoint) => throughForebay(client, folder, endpoint)).catch(
    (error: unknown): Results => ({ run: reasonOf(error) }),
  );
  const steps = Object.keys({ ...direct, ...through });
  const differences = steps
    .filter((step) => comparable(direct[step] ?? "") !== comparable(through[step] ?? ""))
    .map((step) => ({ step, text: describeDifference(direct[step], through[step]) }));
  return { client: client.name, steps: steps.length, differences };
};

const formatRow = ({ client, steps, differences }: Row): string =>
  `| ${client} | ${steps} | ${differences.map(({ step, text }) => `${step}: ${text}`).join("; ")} |`;

/**
 * Client programs do the same work at anvil and at forebay before anvil. Prints a table of the results that differ.
 * Clients that are no development dependency are installed in a temporary folder.
 */
export const long = async ({ seconds = WHOLE_SECONDS }: { readonly seconds: number | undefined }) => {
  const rows: Row[] = [];
  process.stdout.write("| Client | Steps | Differences through forebay |\n|---|---|---|\n");
  for (const client of CLIENTS.filter(({ install }) => install === undefined || seconds >= WHOLE_SECONDS)) {
    const folder = await mkdtemp(join(tmpdir(), "forebay-client-"));
    try {
      const row = await compare(client, folder);
      rows.push(row);
      process.stdout.write(`${formatRow(row)}\n`);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  const unknown = rows.flatMap(({ client, differences }) =>
    differences.filter(({ step }) => !KNOWN.has(step)).map(({ step }) => `${client}: ${step}`),
  );
  const notRun = rows.filter(({ steps }) => typeof steps === "string").map(({ client }) => client);
  return { passed: unknown.length === 0, clients: rows.length - notRun.length, notRun, unknown };
};
