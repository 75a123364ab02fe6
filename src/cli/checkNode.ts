import { once } from "node:events";
import { WebSocket } from "ws";
import type { ChainConfig } from "../config/schema.ts";
import { connectionFault, connectionHint } from "../core/connectionFault.ts";
import { timeoutSignal } from "../core/lazySignal.ts";
import { nodeName, parseNodeUrl } from "../nodes/nodeConfig.ts";
import { CHECK_TIMEOUT_MS, type CheckResult, checked, withHint } from "./checkResult.ts";
import { NoResultError, type ResultTarget, requestOnce, requestResult } from "./requestResult.ts";

type NodeConfig = ChainConfig["nodes"][number];

export interface CheckedNode {
  readonly name: string;
  /** Undefined if the node did not return one. */
  readonly chainId: number | undefined;
  /** Undefined if the node did not answer. */
  readonly abilities: NodeAbilities | undefined;
  readonly results: readonly CheckResult[];
}

const reasonAt = (url: string) => (error: unknown) => {
  const { host } = new URL(url);
  if (error instanceof Error && error.name === "TimeoutError") {
    return `no response from ${host} within ${CHECK_TIMEOUT_MS} ms`;
  }
  const fault = connectionFault(error);
  return withHint(`${host}: ${fault}`, connectionHint(fault));
};

const since = (startMs: number): string => `${Math.round(performance.now() - startMs)} ms`;

/** Requests chain id and head over HTTP. */
const checkHttp = async (subject: string, node: NodeConfig) => {
  let chainId: number | undefined;
  let head: number | undefined;
  const result = await checked(
    subject,
    async () => {
      const startMs = performance.now();
      chainId = Number(await requestResult(node, "eth_chainId", CHECK_TIMEOUT_MS));
      const duration = since(startMs);
      head = Number(await requestResult(node, "eth_blockNumber", CHECK_TIMEOUT_MS));
      return { level: "ok", text: `chain ${chainId}, head ${head}, ${duration}` };
    },
    reasonAt(node.url),
  );
  return { chainId, head, result };
};

const SUBSCRIBE = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] });

/** Subscribes to new heads over WebSocket. */
const checkWebSocket = (subject: string, url: string, headers: NodeConfig["headers"]): Promise<CheckResult> =>
  checked(
    `${subject} WebSocket`,
    async () => {
      const startMs = performance.now();
      const target = new URL(url);
      target.username = "";
      target.password = "";
      const signal = timeoutSignal(CHECK_TIMEOUT_MS);
      const options = { headers: parseNodeUrl(url, headers).headers, handshakeTimeout: CHECK_TIMEOUT_MS };
      const socket = new WebSocket(target, options);
      // The end of a socket that is closed before it is open is an error, too.
      socket.on("error", () => undefined);
      try {
        await once(socket, "open", { signal });
        socket.send(SUBSCRIBE);
        const [data] = await once(socket, "message", { signal });
        const { error }: { error?: { message?: unknown } | null } = Object(JSON.parse(String(data)));
        if (error !== undefined && error !== null) {
          return { level: "fault", text: `the node rejects newHeads: ${String(error.message)}` };
        }
        return { level: "ok", text: `newHeads, ${since(startMs)}` };
      } catch (error) {
        throw signal.aborted ? signal.reason : error;
      } finally {
        socket.terminate();
      }
    },
    reasonAt(url),
  );

/** Checks the HTTP and the WebSocket endpoint of one node. Never rejects. */
export const checkNode = async (chain: ChainConfig, node: NodeConfig, index: number): Promise<CheckedNode> => {
  const name = nodeName(node, index);
  const subject = `${chain.name}/${name}`;
  const [{ chainId, head, result }, ...others] = await Promise.all([
    checkHttp(subject, node),
    ...(node.wsUrl === undefined ? [] : [checkWebSocket(subject, node.wsUrl, node.headers)]),
  ]);
  const isWrongChain = chain.chainId !== undefined && chainId !== undefined && chainId !== chain.chainId;
  const own: CheckResult = isWrongChain
    ? { subject, level: "fault", text: `its chain id is ${chainId}, the configuration says ${chain.chainId}` }
    : result;
  if (isWrongChain || head === undefined) {
    return { name, chainId, abilities: undefined, results: [own, ...others] };
  }
  const hasWebSocket = others.some(({ level }) => level === "ok");
  const abilities = await readAbilities(node, head, hasWebSocket, CHECK_TIMEOUT_MS);
  const can = [`can: ${abilities.can.join(", ")}`, `cannot: ${abilities.cannot.join(", ")}`].join("; ");
  const warnings = abilities.ignoresOverrides ? [{ subject, level: "warn", text: IGNORES_OVERRIDES } as const] : [];
  return { name, chainId, abilities, results: [own, ...others, { subject, level: "ok", text: can }, ...warnings] };
};

/** The abilities of one node. */
interface NodeAbilities {
  /** It has what a block wrote: traces or block access lists. */
  readonly hasWriteSets: boolean;
  /** It executes a call without the state overrides of the call, and reports no error. */
  readonly ignoresOverrides: boolean;
  readonly can: readonly string[];
  readonly cannot: readonly string[];
}

type Ask = (method: string, params: readonly unknown[]) => Promise<unknown>;

const ACCOUNT = `0x${"0".repeat(40)}`;
/** No log has this topic: the response is empty, whatever the range. */
const NO_TOPIC = `0x${"f0".repeat(32)}`;
const DIFF_TRACER = { tracer: "prestateTracer", tracerConfig: { diffMode: true } };
/** The limits of providers. */
const LOG_RANGES = [10_000, 5_000, 2_000, 1_000, 500, 100, 10, 1];
/** A node without an archive has 128 blocks or more. */
const STATE_DEPTHS = [1_000_000, 100_000, 10_000, 1_000, 128];

const IGNORES_OVERRIDES = "its eth_call ignores state overrides: forwarded calls with overrides get wrong results";
const CODE_ADDRESS = "0x000000000000000000000000000000000000c0de";
/** Returns the word 7. */
const RETURNS_SEVEN = "0x600760005260206000f3";

const quantity = (value: number): string => `0x${value.toString(16)}`;
const blocks = (count: number): string => `${count.toLocaleString("en-US")} ${count === 1 ? "block" : "blocks"}`;

/** Whether the node returns a result other than null. */
const answers = async (ask: Ask, method: string, params: readonly unknown[]): Promise<boolean> => {
  try {
    const result = await ask(method, params);
    return result !== null && result !== undefined;
  } catch {
    return false;
  }
};

/** Returns the first of these values for which the node answers. */
const firstOf = async <T>(values: readonly T[], isSo: (value: T) => Promise<boolean>): Promise<T | undefined> => {
  for (const value of values) {
    if (await isSo(value)) {
      return value;
    }
  }
  return undefined;
};

/** Returns the oldest block whose state the node has, as text. */
const readDepth = async (ask: Ask, head: number): Promise<string | undefined> => {
  const hasState = (number: number) => answers(ask, "eth_getBalance", [ACCOUNT, quantity(Math.max(0, number))]);
  if (await hasState(1)) {
    return "state of all blocks";
  }
  const depth = await firstOf(
    STATE_DEPTHS.filter((each) => each < head),
    (each) => hasState(head - each),
  );
  return depth === undefined ? undefined : `state of the newest ${blocks(depth)}`;
};

/** Whether the node returns a result that the overridden code does not return. */
const ignoresOverrides = async (ask: Ask, number: string): Promise<boolean> => {
  const overrides = { [CODE_ADDRESS]: { code: RETURNS_SEVEN } };
  const result = await ask("eth_call", [{ to: CODE_ADDRESS }, number, overrides]).catch(() => undefined);
  return typeof result === "string" && BigInt(result === "0x" ? 0 : result) !== 7n;
};

/** Whether the node executes the method. geth charges the sender of this call, so that it may report insufficient funds. */
const hasAccessLists = async (ask: Ask, number: string): Promise<boolean> => {
  try {
    return (await ask("eth_createAccessList", [{ to: ACCOUNT }, number])) !== null;
  } catch (error) {
    return error instanceof NoResultError && error.kind === "rejected";
  }
};

const readLogRange = async (ask: Ask, head: number): Promise<string | undefined> => {
  const isAccepted = (range: number) =>
    answers(ask, "eth_getLogs", [
      { fromBlock: quantity(Math.max(0, head - range + 1)), toBlock: quantity(head), topics: [NO_TOPIC] },
    ]);
  const range = await firstOf(LOG_RANGES, isAccepted);
  return range === undefined ? undefined : `logs of ${blocks(range)}`;
};

const acceptsBatches = async (node: ResultTarget, timeoutMs: number): Promise<boolean> => {
  const call = (id: number) => ({ jsonrpc: "2.0", id, method: "eth_chainId", params: [] });
  const { response } = await requestOnce(node, [call(1), call(2)], timeoutMs).catch(() => ({ response: undefined }));
  return Array.isArray(response) && response.length === 2 && response.every((item) => "result" in Object(item));
};

/** Asks a node for what forebay can use. `hasWebSocket`: new heads were pushed. */
const readAbilities = async (
  node: ResultTarget,
  head: number,
  hasWebSocket: boolean,
  timeoutMs: number,
): Promise<NodeAbilities> => {
  const ask: Ask = (method, params) => requestResult(node, method, timeoutMs, params);
  const number = quantity(head);
  const { hash } = Object(await ask("eth_getBlockByNumber", [number, false]).catch(() => undefined));
  const [traces, lists, state, logs, batches, accessList, proofs, witness, isIgnored] = await Promise.all([
    answers(ask, "debug_traceBlockByHash", [hash, DIFF_TRACER]),
    answers(ask, "eth_getBlockAccessList", [hash]),
    readDepth(ask, head),
    readLogRange(ask, head),
    acceptsBatches(node, timeoutMs),
    hasAccessLists(ask, number),
    answers(ask, "eth_getProof", [ACCOUNT, [], number]),
    answers(ask, "debug_executionWitness", [number]),
    ignoresOverrides(ask, number),
  ]);
  const all: readonly (readonly [text: string, isSo: boolean])[] = [
    ["traces of blocks", traces],
    ["block access lists", lists],
    [state ?? "state of the newest 128 blocks", state !== undefined],
    [logs ?? "eth_getLogs", logs !== undefined],
    ["batches", batches],
    ["eth_createAccessList", accessList],
    ["proofs", proofs],
    ["witnesses", witness],
    ["WebSocket", hasWebSocket],
  ];
  const textsOf = (wanted: boolean) => all.filter(([, isSo]) => isSo === wanted).map(([text]) => text);
  return { hasWriteSets: traces || lists, ignoresOverrides: isIgnored, can: textsOf(true), cannot: textsOf(false) };
};
