import { readdirSync, readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { dirname, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import {
  isArrowFunction,
  isClassDeclaration,
  isConstructorDeclaration,
  isExportDeclaration,
  isFunctionDeclaration,
  isFunctionExpression,
  isGetAccessorDeclaration,
  isImportDeclaration,
  isInterfaceDeclaration,
  isMethodDeclaration,
  isNamedImports,
  isStringLiteral,
  isTypeAliasDeclaration,
  isVariableStatement,
  type Node,
  type SourceFile,
} from "typescript/unstable/ast";
import { API } from "typescript/unstable/sync";
import { createDevnet } from "./devnet/devnet.ts";
import { devAccounts } from "./devnet/traffic.ts";
import { connectSocket } from "./support/clients/socketClient.ts";
import { createFakeChain } from "./support/fakes/fakeChain.ts";
import { createFakeFeed } from "./support/fakes/fakeFeed.ts";
import { createFakeNode } from "./support/fakes/fakeNode.ts";
import { createService } from "./support/servers/service.ts";

/** `npm run shape` prints how many things `src` consists of, and how many files a request and a flashblock pass. It judges nothing. */

const ROOT = resolve(import.meta.dirname, "..");
const SRC = join(ROOT, "src");
const LONG_FUNCTION = 60;
const SHORT_FILE = 40;
/** Files that run in each of these rounds are on the way. Others ran in the background. */
const ROUNDS = 10;
const NAME_WIDTH = 40;
const TO = `0x${"22".repeat(20)}` as const;
const BLOCKS = 4_000;
const BLOCKS_OF_QUERY = 300;

interface FileShape {
  readonly lines: number;
  readonly exports: ReadonlySet<string>;
  /** The imported names by path of their file. */
  readonly imports: ReadonlyMap<string, readonly string[]>;
  readonly longFunctions: readonly string[];
}

const print = (rows: Readonly<Record<string, string | number>>): void => {
  for (const [name, value] of Object.entries(rows)) {
    process.stdout.write(`${name.padEnd(NAME_WIDTH)}${value}\n`);
  }
};

const isFunction = (node: Node): boolean =>
  isArrowFunction(node) ||
  isConstructorDeclaration(node) ||
  isFunctionDeclaration(node) ||
  isFunctionExpression(node) ||
  isGetAccessorDeclaration(node) ||
  isMethodDeclaration(node);

const lineOf = (text: string, position: number): number => text.slice(0, position).split("\n").length;

const longFunctionsOf = (file: SourceFile, path: string): readonly string[] => {
  const found: string[] = [];
  const visit = (node: Node): undefined => {
    if (isFunction(node)) {
      const first = lineOf(file.text, node.getStart(file));
      const lines = lineOf(file.text, node.end) - first + 1;
      if (lines > LONG_FUNCTION) {
        found.push(`${path}:${first} (${lines} lines)`);
      }
    }
    node.forEachChild(visit);
  };
  visit(file);
  return found;
};

/** The names that a statement declares, if it is an export. */
const exportsOf = (statement: Node, file: SourceFile): readonly string[] => {
  if (!/^export\b/.test(statement.getText(file))) {
    return [];
  }
  if (isVariableStatement(statement)) {
    return statement.declarationList.declarations.map(({ name }) => name.getText(file));
  }
  const isNamed =
    isClassDeclaration(statement) ||
    isFunctionDeclaration(statement) ||
    isInterfaceDeclaration(statement) ||
    isTypeAliasDeclaration(statement);
  return isNamed && statement.name ? [statement.name.getText(file)] : [];
};

const importsOf = (file: SourceFile, folder: string): ReadonlyMap<string, readonly string[]> => {
  const imports = new Map<string, readonly string[]>();
  for (const statement of file.statements) {
    if (!isImportDeclaration(statement) && !isExportDeclaration(statement)) {
      continue;
    }
    const from = statement.moduleSpecifier;
    if (from && isStringLiteral(from) && from.text.startsWith(".")) {
      const bindings = isImportDeclaration(statement) ? statement.importClause?.namedBindings : undefined;
      const names = bindings && isNamedImports(bindings) ? bindings.elements : [];
      const path = relative(SRC, resolve(folder, from.text));
      imports.set(path, [...(imports.get(path) ?? []), ...names.map((name) => (name.propertyName ?? name.name).text)]);
    }
  }
  for (const [, dynamic = ""] of file.text.matchAll(/import\("(\.[^"]+)"\)/g)) {
    const path = relative(SRC, resolve(folder, dynamic));
    imports.set(path, imports.get(path) ?? []);
  }
  return imports;
};

const readShapes = (): ReadonlyMap<string, FileShape> => {
  const api = new API({ cwd: ROOT });
  const [project] = api.updateSnapshot({ openProjects: [join(ROOT, "tsconfig.json")] }).getProjects();
  const shapes = new Map<string, FileShape>();
  for (const name of readdirSync(SRC, { recursive: true, encoding: "utf8" })) {
    const path = join(SRC, name);
    const file = name.endsWith(".ts") ? project?.program.getSourceFile(path) : undefined;
    if (file) {
      shapes.set(name, {
        lines: readFileSync(path, "utf8").split("\n").length - 1,
        exports: new Set(file.statements.flatMap((statement) => exportsOf(statement, file))),
        imports: importsOf(file, dirname(path)),
        longFunctions: longFunctionsOf(file, name),
      });
    }
  }
  api.close();
  return shapes;
};

const printShape = (shapes: ReadonlyMap<string, FileShape>): void => {
  const importers = new Map<string, number>();
  const users = new Map<string, number>();
  const homes = new Map<string, number>();
  for (const { imports, exports } of shapes.values()) {
    for (const name of exports) {
      homes.set(name, (homes.get(name) ?? 0) + 1);
    }
    for (const [path, names] of imports) {
      importers.set(path, (importers.get(path) ?? 0) + 1);
      for (const name of new Set(names)) {
        users.set(`${path} ${name}`, (users.get(`${path} ${name}`) ?? 0) + 1);
      }
    }
  }
  const files = [...shapes];
  const [longest] = files.toSorted(([, a], [, b]) => b.lines - a.lines);
  const withOneImporter = files.filter(([path]) => importers.get(path) === 1);
  print({
    files: files.length,
    lines: files.reduce((sum, [, { lines }]) => sum + lines, 0),
    "longest file": `${longest?.[1].lines} (${longest?.[0]})`,
    "functions over 60 lines": files.flatMap(([, { longFunctions }]) => longFunctions).join(", ") || 0,
    "exports used by one other file": users
      .values()
      .filter((count) => count === 1)
      .toArray().length,
    "files with one importer": withOneImporter.length,
    "of these, files of at most 40 lines": withOneImporter.filter(([, { lines }]) => lines <= SHORT_FILE).length,
    "names exported by several files": homes
      .values()
      .filter((count) => count > 1)
      .toArray().length,
  });
};

const call = async (url: string, method: string, params: readonly unknown[]): Promise<void> => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  const { error }: { readonly error?: unknown } = JSON.parse(await response.text());
  if (error !== undefined) {
    throw new Error(`${method}: ${JSON.stringify(error)}`);
  }
};

/** The files of `src` with a function that ran, on the main thread, in every round. */
const filesOnTheWay = async (session: Session, send: (round: number) => Promise<void>): Promise<number> => {
  let common: readonly string[] | undefined;
  await send(0);
  for (let round = 1; round <= ROUNDS; round++) {
    await session.post("Profiler.takePreciseCoverage");
    await send(round);
    const { result } = await session.post("Profiler.takePreciseCoverage");
    const run = new Set(
      result
        .filter(({ url }) => url.startsWith(pathToFileURL(SRC).href))
        .filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
        .map(({ url }) => url),
    );
    common = common?.filter((url) => run.has(url)) ?? [...run];
  }
  return common?.length ?? 0;
};

const TRANSFER = {
  ...({ type: "eip1559", to: TO, value: 1n, gas: 21_000n } as const),
  ...{ maxFeePerGas: 20n * 10n ** 9n, maxPriorityFeePerGas: 1_000_000n },
};

/** The way of a message whose values are known, from the socket of the feed to a subscriber, without the thread that executes it. */
const filesOfFlashblock = async (session: Session): Promise<number> => {
  await using devnet = await createDevnet({ manual: true, generation: "e" });
  const feed = await createFakeFeed();
  const service = await createService({
    nodes: [{ url: devnet.url }],
    pending: { mode: "feed", feeds: [feed.url] },
    forks: "isthmus",
    quirks: { anvilDepositNonce: true },
  });
  const client = await connectSocket(service.url);
  const received = await client.subscribe("newFlashblocks");
  // The devnet uses files of `src` too, so all messages are made before.
  const messages = [await devnet.step()];
  const [account] = devAccounts;
  for (let nonce = 0; nonce <= ROUNDS; nonce++) {
    const raw = await account?.signTransaction({ ...TRANSFER, nonce, chainId: devnet.chainId });
    await call(devnet.url, "eth_sendRawTransaction", [raw]);
    messages.push(await devnet.step());
  }
  const send = async (position: number): Promise<void> => {
    const message = messages[position];
    feed.send(message ?? {});
    while (!JSON.stringify(received.at(-1) ?? "").includes(message?.diff.block_hash ?? "")) {
      await client.atLeast(received, received.length + 1);
    }
  };
  await send(0);
  const files = await filesOnTheWay(session, (round) => send(round + 1));
  await client.close();
  await service.close();
  await feed.close();
  return files;
};

const printWays = async (): Promise<void> => {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  const node = await createFakeNode({
    chain: createFakeChain({ height: BLOCKS }),
    handlers: { eth_call: () => "0x01" },
  });
  const service = await createService({ nodes: [{ url: node.url }] });
  const hex = (number: number): string => `0x${number.toString(16)}`;
  const logsOf = (from: number) => ({ fromBlock: hex(from), toBlock: hex(from + BLOCKS_OF_QUERY - 1) });
  const send = (method: string, params: readonly unknown[]) => call(service.url, method, params);
  print({
    "files on the way of a hit": await filesOnTheWay(session, () => send("eth_getBlockByNumber", [hex(10), false])),
    "of a miss": await filesOnTheWay(session, (n) => send("eth_call", [{ to: TO, data: hex(4_096 + n) }, "latest"])),
    "of a cold eth_getLogs": await filesOnTheWay(session, (n) => send("eth_getLogs", [logsOf(n * BLOCKS_OF_QUERY)])),
  });
  await service.close();
  await node.close();
  print({ "of a flashblock": await filesOfFlashblock(session) });
};

printShape(readShapes());
await printWays();
