import { readFileSync, unwatchFile, watchFile } from "node:fs";
import { ConfigError } from "../config/readConfig.ts";
import type { Config } from "../config/schema.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

export interface ReloadOptions {
  /** Looked at for changes; absent where everything came by flags. */
  readonly file?: string | undefined;
  /** How often. */
  readonly pollMs?: number;
  /** Throws ConfigError where the configuration is not valid. */
  read(): Config;
  /** Rejects with ConfigError where it cannot be put in force; then the old one still is. */
  apply(config: Config): Promise<void>;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

export interface Reload {
  /** Reads and applies it now, changed or not. Never rejects. */
  run(): Promise<void>;
  close(): void;
}

const DEFAULT_POLL_MS = 2_000;

/**
 * A changed configuration is put in force without a restart, or refused whole. The file is looked at by `stat`, through
 * symbolic links: so the swap of links is seen by which Kubernetes changes a mounted ConfigMap, on any file system.
 */
export const createReload = ({ file, read, apply, telemetry, pollMs = DEFAULT_POLL_MS }: ReloadOptions): Reload => {
  const { log, metrics } = telemetry;
  let last = Promise.resolve();

  const textOf = (path: string): string | undefined => {
    try {
      return readFileSync(path, "utf8");
    } catch {
      return undefined;
    }
  };
  let seen = file === undefined ? undefined : textOf(file);

  const once = async (): Promise<void> => {
    try {
      await apply(read());
      metrics.reloads.inc({ outcome: "applied" });
      log.info("configuration applied");
    } catch (error) {
      metrics.reloads.inc({ outcome: "refused" });
      if (error instanceof ConfigError) {
        log.error({ faults: error.faults }, "configuration refused: the old one stays in force");
      } else log.error({ err: error }, "configuration not applied: the old one stays in force");
    }
  };
  /** One after another: each sees what the one before left in force. */
  const run = (): Promise<void> => {
    last = last.then(once);
    return last;
  };

  const onStat = (): void => {
    if (file === undefined) return;
    const text = textOf(file);
    if (text === undefined || text === seen) return;
    seen = text;
    void run();
  };
  if (file !== undefined) watchFile(file, { interval: pollMs, persistent: false }, onStat);

  return {
    run: () => {
      if (file !== undefined) seen = textOf(file);
      return run();
    },
    close: () => {
      if (file !== undefined) unwatchFile(file, onStat);
    },
  };
};
