import { readFileSync, unwatchFile, watchFile } from "node:fs";
import { ConfigError } from "../config/readConfig.ts";
import type { Config } from "../config/schema.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

export interface ReloadOptions {
  /** File to watch; undefined if there are only flags. */
  readonly file?: string | undefined;
  /** Period of the checks. */
  readonly pollMs?: number;
  /** Reads the configuration. Throws ConfigError if it is invalid. */
  read(): Config;
  /** Applies the configuration. Rejects with ConfigError if it cannot; then the old one is still active. */
  apply(config: Config): Promise<void>;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

export interface Reload {
  /** Reads and applies the configuration now, even if it is unchanged. Never rejects. */
  run(): Promise<void>;
  close(): void;
}

const DEFAULT_POLL_MS = 2_000;

/**
 * Creates the reload of a changed configuration without a restart. An invalid configuration is rejected as a whole.
 * The file is watched by `stat`, through symbolic links.
 * Kubernetes swaps a link to change a mounted ConfigMap, and `stat` sees that on any file system.
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
  let lastText = file === undefined ? undefined : textOf(file);

  const reload = async (): Promise<void> => {
    try {
      await apply(read());
      metrics.reloads.inc({ outcome: "applied" });
      log.info("configuration applied");
    } catch (error) {
      metrics.reloads.inc({ outcome: "refused" });
      if (error instanceof ConfigError) {
        log.error({ faults: error.faults }, "configuration rejected: the old one stays active");
      } else {
        log.error({ err: error }, "configuration not applied: the old one stays active");
      }
    }
  };
  /** Runs reloads one at a time, so that each starts from the result of the last. */
  const run = (): Promise<void> => {
    last = last.then(reload);
    return last;
  };

  const onStat = (): void => {
    if (file === undefined) {
      return;
    }
    const text = textOf(file);
    if (text === undefined || text === lastText) {
      return;
    }
    lastText = text;
    void run();
  };
  if (file !== undefined) {
    watchFile(file, { interval: pollMs, persistent: false }, onStat);
  }

  return {
    run: () => {
      if (file !== undefined) {
        lastText = textOf(file);
      }
      return run();
    },
    close: () => {
      if (file !== undefined) {
        unwatchFile(file, onStat);
      }
    },
  };
};
