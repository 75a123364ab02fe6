import { once } from "node:events";
import { WebSocket } from "ws";
import type { ChainConfig } from "../config/schema.ts";
import { connectionFault, connectionHint } from "../core/connectionFault.ts";
import { nodeName } from "../nodes/nodeName.ts";
import { parseNodeUrl } from "../nodes/nodeUrl.ts";
import { requestResult } from "../nodes/requestResult.ts";
import { type NodeAbilities, readAbilities } from "./checkAbilities.ts";
import { CHECK_TIMEOUT_MS, type CheckResult, checked, withHint } from "./checkResult.ts";

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
      const signal = AbortSignal.timeout(CHECK_TIMEOUT_MS);
      const options = { headers: parseNodeUrl(url, headers).headers, handshakeTimeout: CHECK_TIMEOUT_MS };
      const socket = new WebSocket(target, options);
      // The end of a socket that is closed before it is open is an error, too.
      socket.on("error", () => undefined);
      try {
        await once(socket, "open", { signal });
        socket.send(SUBSCRIBE);
        const [data] = await once(socket, "message", { signal });
        const { error }: { error?: { message?: unknown } } = Object(JSON.parse(String(data)));
        if (error !== undefined) {
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
  return { name, chainId, abilities, results: [own, ...others, { subject, level: "ok", text: can }] };
};
