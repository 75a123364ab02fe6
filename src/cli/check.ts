import { constants } from "node:fs";
import { access as openFor, stat, statfs } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { facilitatorClient, loadX402 } from "../access/payment/payments.ts";
import { type PaymentOptions, X402_VERSION } from "../access/payment/quote.ts";
import { createRedisClient, formatHosts, parseRedisUrl, redisFault } from "../cache/redisClient.ts";
import { originOf } from "../config/providers.ts";
import type { ChainConfig, Config } from "../config/schema.ts";
import { connectionFault, connectionHint } from "../core/connectionFault.ts";
import { errorText } from "../core/errorText.ts";
import { connectFeed, decodeFrame } from "../feed/feedConnection.ts";
import { parseFlashblock } from "../feed/parseFlashblock.ts";
import { requiredOrigins } from "../heads/decideHead.ts";
import { nodeName } from "../nodes/nodeConfig.ts";
import { readForksFile } from "../runs/rulesWatch.ts";
import { describeBudgets } from "./checkBudgets.ts";
import { checkForwarded } from "./checkForwarded.ts";
import { type CheckedNode, checkNode } from "./checkNode.ts";
import { checkOrigins } from "./checkOrigins.ts";
import { CHECK_TIMEOUT_MS, type CheckResult, checked, withHint } from "./checkResult.ts";

/** The levels of the log that include `info`. */
const LEVELS_WITH_REQUESTS: ReadonlySet<string> = new Set(["trace", "debug", "info"]);

/** The nodes of one chain must have the same chain id. */
const compareIds = (chain: ChainConfig, nodes: readonly CheckedNode[]): readonly CheckResult[] => {
  const first = nodes.find(({ chainId }) => chainId !== undefined);
  if (first === undefined || chain.chainId !== undefined) {
    return [];
  }
  const others = nodes.filter(({ chainId }) => chainId !== undefined && chainId !== first.chainId);
  const faults = others.map(
    ({ name, chainId }): CheckResult => ({
      subject: `${chain.name}/${name}`,
      level: "fault",
      text: `its chain id is ${chainId}, that of ${first.name} is ${first.chainId}`,
    }),
  );
  const warning: CheckResult = {
    subject: chain.name,
    level: "warn",
    text: `no chainId is configured, the first node that responds decides: set chainId: ${first.chainId}`,
  };
  return [...faults, warning];
};

/** Names the origins of a chain's nodes, and how many of them must have a block before it is served. */
const describeOrigins = (chain: ChainConfig): CheckResult => {
  const origins = [...new Set(chain.nodes.map(originOf))];
  const required = requiredOrigins(chain.heads.agree, origins.length);
  const subject = `${chain.name} heads`;
  return origins.length === 1
    ? {
        subject,
        level: "ok",
        text: `one origin, its word alone decides: ${origins[0]}`,
      }
    : { subject, level: "ok", text: `${required} of ${origins.length} origins must agree: ${origins.join(", ")}` };
};

/** Warns if keys require proven answers of a chain whose head can never be agreed. */
const checkRequired = (chain: ChainConfig, { keys }: Config["access"]): readonly CheckResult[] => {
  const names = keys.flatMap(({ name, require, chains }) =>
    require === "proven" && (chains?.includes(chain.name) ?? true) ? [name] : [],
  );
  const origins = new Set(chain.nodes.map(originOf));
  const text = `one origin: no head is agreed, and every call of a key with \`require: proven\` fails (${names.join(", ")})`;
  return names.length > 0 && origins.size === 1 ? [{ subject: `${chain.name} proofs`, level: "warn", text }] : [];
};

/** Names the keys of a chain whose `latest` is below the head. */
const describeConfirmations = (chain: ChainConfig, { keys }: Config["access"]): readonly CheckResult[] => {
  const described = keys.flatMap(({ name, confirmations, chains }) =>
    confirmations > 0 && (chains?.includes(chain.name) ?? true) ? [`${confirmations} for ${name}`] : [],
  );
  const text = `blocks between latest and the head: ${described.join(", ")}`;
  return described.length > 0 ? [{ subject: `${chain.name} confirmations`, level: "ok", text }] : [];
};

/** Names the nodes that get raw transactions. Undefined if only the best one does. */
const describeWrites = (chain: ChainConfig): CheckResult | undefined => {
  if (chain.writes === "first") {
    return undefined;
  }
  const subject = `${chain.name} writes`;
  const names = chain.nodes.flatMap((node, index) => (node.private ? [] : [nodeName(node, index)]));
  return names.length < 2
    ? { subject, level: "warn", text: "`writes: all` changes nothing: fewer than two nodes are not private" }
    : { subject, level: "ok", text: `raw transactions go to ${names.length} nodes: ${names.join(", ")}` };
};

/** Reports a file with fork times that cannot be used. Undefined without one. */
const describeForksFile = (chain: ChainConfig, chainId: number | undefined): CheckResult | undefined => {
  const { forks, forksFile } = chain;
  const subject = `${chain.name} forksFile`;
  if (forksFile === undefined) {
    return undefined;
  }
  if (forks !== "auto") {
    return { subject, level: "warn", text: "it has no effect: `forks` is not `auto`" };
  }
  try {
    const found = readForksFile(forksFile, BigInt(chainId ?? 0));
    return found === undefined
      ? { subject, level: "warn", text: `${forksFile} has no fork times of this chain` }
      : { subject, level: "ok", text: `fork times of ${forksFile} are used` };
  } catch (error) {
    return { subject, level: "fault", text: errorText(error) };
  }
};

const checkChain = async (chain: ChainConfig, access: Config["access"]): Promise<readonly CheckResult[]> => {
  const { feeds, maxMessageBytes } = chain.pending;
  const [nodes, origins, feedResults] = await Promise.all([
    Promise.all(chain.nodes.map((node, index) => checkNode(chain, node, index))),
    checkOrigins(chain),
    Promise.all(feeds.map((url, index) => checkFeed(`${chain.name}/feed${index + 1}`, url, maxMessageBytes))),
  ]);
  const own = [
    ...nodes.flatMap(({ results }) => results),
    ...compareIds(chain, nodes),
    describeOrigins(chain),
    ...origins,
    ...checkRequired(chain, access),
    ...describeConfirmations(chain, access),
    ...[describeWrites(chain), describeForksFile(chain, chain.chainId ?? nodes[0]?.chainId)].filter(
      (result) => result !== undefined,
    ),
    ...feedResults,
  ];
  return [...own, ...(await checkForwarded(chain, nodes))];
};

/** Says how many calls have a line. Undefined if none are wanted. */
const describeRequestLog = ({ level, requests }: Config["log"]): CheckResult | undefined => {
  const subject = "log of requests";
  if (requests === 0) {
    return undefined;
  }
  return LEVELS_WITH_REQUESTS.has(level)
    ? { subject, level: "ok", text: `a line for ${Number((100 * requests).toPrecision(6))} % of the calls` }
    : {
        subject,
        level: "warn",
        text: `\`log.requests\` has no effect: its lines are at info, and log.level is ${level}`,
      };
};

/** Checks every node (HTTP, WebSocket), feed, data folder, Redis and the facilitator of a configuration. Never rejects. */
export const checkConfig = async (config: Config): Promise<readonly CheckResult[]> => {
  const { chains, cache, server, access, log } = config;
  const { payment } = access;
  const results = await Promise.all([
    ...chains.map((chain) => checkChain(chain, access)),
    ...(server.dataDir === undefined ? [] : [checkFolder(server.dataDir, cache).then((result) => [result])]),
    ...(cache.redis === undefined ? [] : [checkRedis(cache.redis).then((result) => [result])]),
    ...(payment?.redis === undefined
      ? []
      : [checkRedis(payment.redis).then((result) => [{ ...result, subject: "redis of payments" }])]),
    ...(payment === undefined ? [] : [checkFacilitator(payment).then((result) => [result])]),
  ]);
  const requests = describeRequestLog(log);
  return [...results.flat(), ...(requests ? [requests] : []), ...describeBudgets(config)];
};

const GIB = 1024 ** 3;
const ACCESS_OF_OTHERS = 0o077;

/** Returns the folder, or the nearest one above it that exists. */
const existingFolder = async (folder: string): Promise<string> => {
  const found = await stat(folder).catch(() => undefined);
  if (found === undefined && dirname(folder) !== folder) {
    return existingFolder(dirname(folder));
  }
  if (found?.isDirectory() !== true) {
    throw new Error(`${folder} is not a folder`);
  }
  return folder;
};

/** Looks at the data folder. It creates nothing, because forebay may run as another user. Never rejects. */
const checkFolder = (folder: string, { disk, diskBytes, redis }: Config["cache"]): Promise<CheckResult> => {
  const run = async (): Promise<Omit<CheckResult, "subject">> => {
    const existing = await existingFolder(resolve(folder));
    await openFor(existing, constants.W_OK);
    const { bavail, bsize } = await statfs(existing);
    const { mode } = await stat(existing);
    const isUsed = disk === "always" || (disk === "auto" && redis === undefined);
    const limit = `up to ${(diskBytes / GIB).toFixed(1)} GiB`;
    if (isUsed && bavail * bsize < diskBytes) {
      const free = `${((bavail * bsize) / GIB).toFixed(1)} GiB are free`;
      return { level: "warn", text: `${folder}: ${free}, and it takes ${limit}` };
    }
    if (existing === resolve(folder) && (mode & ACCESS_OF_OTHERS) !== 0) {
      return { level: "warn", text: `${folder}: other users can open it; who writes to it can forge values` };
    }
    return { level: "ok", text: `${folder}: ${isUsed ? limit : "no entries are stored (cache.disk)"}` };
  };
  return checked("data folder", run, (error) => `${folder}: ${errorText(error)}`);
};

/** Connects to Redis and sends PING. Never rejects. Throws an error without the URL if the URL is invalid. */
const checkRedis = (url: string): Promise<CheckResult> => {
  const subject = "redis";
  const startMs = performance.now();
  const address = parseRedisUrl(url);
  const hosts = formatHosts(address);
  const client = createRedisClient(address);
  const ended = Promise.withResolvers<CheckResult>();
  client.on("error", (error) => {
    const { reason, hint } = redisFault(error, address.tls);
    ended.resolve({ subject, level: "fault", text: withHint(`${hosts}: ${reason}`, hint) });
  });
  client.on("ready", () =>
    client.ping().then(
      () =>
        ended.resolve({
          subject,
          level: "ok",
          text: `${hosts}: PING answered, ${Math.round(performance.now() - startMs)} ms`,
        }),
      (error: unknown) =>
        ended.resolve({ subject, level: "fault", text: `${hosts}: ${redisFault(error, address.tls).reason}` }),
    ),
  );
  const timer = setTimeout(
    () => ended.resolve({ subject, level: "fault", text: `${hosts}: no answer to PING within ${CHECK_TIMEOUT_MS} ms` }),
    CHECK_TIMEOUT_MS,
  );
  return ended.promise.finally(() => {
    clearTimeout(timer);
    client.disconnect();
  });
};

/** Connects to a feed and waits for its first message. Never rejects. */
const checkFeed = (subject: string, url: string, maxMessageBytes: number): Promise<CheckResult> => {
  const startMs = performance.now();
  const { host } = new URL(url);
  const ended = Promise.withResolvers<CheckResult>();
  let isOpen = false;
  const end = (level: CheckResult["level"], text: string): void => ended.resolve({ subject, level, text });
  const disconnect = connectFeed({
    url,
    maxFrameBytes: maxMessageBytes,
    pingMs: CHECK_TIMEOUT_MS,
    pongDeadlineMs: CHECK_TIMEOUT_MS,
    idleMs: () => CHECK_TIMEOUT_MS,
    onOpen: () => {
      isOpen = true;
    },
    onFrame: (bytes) => {
      const frame = decodeFrame(bytes, maxMessageBytes);
      const parsed = "text" in frame ? parseFlashblock(frame.text) : frame;
      if (!("message" in parsed)) {
        return false;
      }
      const duration = Math.round(performance.now() - startMs);
      end("ok", `first message after ${duration} ms`);
      return true;
    },
    onEnd: (reason, fault) => {
      end("fault", withHint(`${host}: ${fault ?? `the connection ended: ${reason}`}`, connectionHint(fault ?? "")));
    },
  });
  const timer = setTimeout(() => {
    const problem = isOpen ? "connected, but no valid message" : "no response";
    end(isOpen ? "warn" : "fault", `${host}: ${problem} within ${CHECK_TIMEOUT_MS} ms`);
  }, CHECK_TIMEOUT_MS);
  return ended.promise.finally(() => {
    clearTimeout(timer);
    disconnect();
  });
};

/** The library names the URL in no error. Its texts about HTTP have the status, and an excerpt of the body. */
const STATUS = /\((\d{3})\)/;

const reasonOf = (host: string, error: unknown): string => {
  const status = error instanceof Error ? STATUS.exec(error.message)?.[1] : undefined;
  if (status !== undefined) {
    return `${host}: HTTP status ${status}`;
  }
  const fault = connectionFault(error);
  return withHint(`${host}: ${fault}`, connectionHint(fault));
};

/** Asks the facilitator which payments it settles. Never rejects. */
export const checkFacilitator = ({
  network,
  facilitator,
}: Pick<PaymentOptions, "network" | "facilitator">): Promise<CheckResult> => {
  const { host } = new URL(facilitator.url);
  const run = async (): Promise<Omit<CheckResult, "subject">> => {
    const client = facilitatorClient(await loadX402(), facilitator, CHECK_TIMEOUT_MS);
    const { kinds } = await client.getSupported();
    const isSupported = kinds.some(
      (kind) =>
        kind.x402Version === X402_VERSION &&
        kind.scheme === "exact" &&
        (kind.network === network || kind.network === "eip155:*"),
    );
    return isSupported
      ? { level: "ok", text: `${host}: settles x402 version 2, scheme exact, on ${network}` }
      : { level: "fault", text: `${host}: does not settle x402 version 2, scheme exact, on ${network}` };
  };
  return checked("facilitator", run, (error) => reasonOf(host, error));
};
