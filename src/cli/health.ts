import { readFileSync } from "node:fs";
import { readArguments, readConfig } from "../config/readConfig.ts";
import type { Config } from "../config/schema.ts";
import { timeoutSignal } from "../core/lazySignal.ts";

const TIMEOUT_MS = 4_000;

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads a file of /proc with texts that end in a zero byte. */
const readTexts = (file: string): readonly string[] => readFileSync(file, "utf8").split("\0").slice(0, -1);

/** Arguments and environment of the forebay that is process 1 of this container. Undefined elsewhere. */
const readContainer = (): { readonly argv: readonly string[]; readonly environment: Environment } | undefined => {
  try {
    const command = readTexts("/proc/1/cmdline");
    const bin = command.findIndex((text) => /\bcli\/(?:bin|launch)\.[jt]s$/.test(text));
    if (bin < 0) {
      return undefined;
    }
    const pairs = readTexts("/proc/1/environ").map((text) => {
      const at = text.indexOf("=");
      return [text.slice(0, at), text.slice(at + 1)];
    });
    return { argv: command.slice(bin + 1), environment: Object.fromEntries(pairs) };
  } catch {
    return undefined;
  }
};

const LOOPBACK: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "[::1]" };

/** Returns the URL of the ops port, as seen from this machine. */
export const opsUrlOf = ({ opsHost, opsPort }: Config["server"]): string => {
  const host = LOOPBACK[opsHost] ?? (opsHost.includes(":") ? `[${opsHost}]` : opsHost);
  return `http://${host}:${opsPort}`;
};

/**
 * Requests `/healthz` of the forebay that these arguments start. Without arguments, in a container, of process 1.
 * Rejects with the reason if it is not healthy.
 */
export const checkHealth = async (argv: readonly string[], environment: Environment): Promise<void> => {
  const own = { argv, environment };
  const target = argv.length > 0 ? own : (readContainer() ?? own);
  const { server } = readConfig(readArguments(target.argv, target.environment), target.environment);
  const url = `${opsUrlOf(server)}/healthz`;
  const { status } = await fetch(url, { signal: timeoutSignal(TIMEOUT_MS) });
  if (status !== 200) {
    throw new Error(`${url} returned HTTP ${status}`);
  }
};
