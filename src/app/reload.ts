import { readFileSync, unwatchFile, watchFile } from "node:fs";
import { isDeepStrictEqual } from "node:util";
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
  /**
   * Applies the configuration. Rejects with ConfigError if it cannot; then the old one is still active.
   * An abort ends its wait for nodes, and rejects.
   */
  apply(config: Config, signal: AbortSignal): Promise<void>;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

export interface Reload {
  /**
   * Reads and applies the configuration now, even if it is unchanged. Never rejects.
   * A reload of another configuration that still waits for its nodes is cancelled.
   */
  run(): Promise<void>;
  close(): void;
}

const DEFAULT_POLL_MS = 2_000;

const textOf = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
};

const refuse = ({ log, metrics }: ReloadOptions["telemetry"], error: unknown): void => {
  metrics.reloads.inc({ outcome: "refused" });
  if (error instanceof ConfigError) {
    log.error({ faults: error.faults }, "configuration rejected: the old one stays active");
  } else {
    log.error({ err: error }, "configuration not applied: the old one stays active");
  }
};

/**
 * Creates the reload of a changed configuration without a restart. An invalid configuration is rejected as a whole.
 * The file is watched by `stat`, through symbolic links.
 * Kubernetes swaps a link to change a mounted ConfigMap, and `stat` sees that on any file system.
 */
export const createReload = ({ file, read, apply, telemetry, pollMs = DEFAULT_POLL_MS }: ReloadOptions): Reload => {
  const { log, metrics } = telemetry;
  let last = Promise.resolve();
  let current: { readonly config: Config; readonly ending: AbortController } | undefined;

  let lastText = file === undefined ? undefined : textOf(file);

  const reload = async (config: Config, { signal }: AbortController): Promise<void> => {
    try {
      signal.throwIfAborted();
      await apply(config, signal);
      metrics.reloads.inc({ outcome: "applied" });
      log.info("configuration applied");
    } catch (error) {
      if (!signal.aborted) {
        return refuse(telemetry, error);
      }
      metrics.reloads.inc({ outcome: "replaced" });
      log.info("configuration not applied: a newer one replaces it");
    }
  };
  /** Runs reloads one at a time, so that each starts from the result of the last. */
  const run = (): Promise<void> => {
    let config: Config;
    try {
      config = read();
    } catch (error) {
      refuse(telemetry, error);
      return Promise.resolve();
    }
    // The same configuration would begin to wait for the same nodes.
    if (current !== undefined && isDeepStrictEqual(current.config, config)) {
      return last;
    }
    current?.ending.abort();
    const own = { config, ending: new AbortController() };
    current = own;
    last = last
      .then(() => reload(config, own.ending))
      .finally(() => {
        if (current === own) {
          current = undefined;
        }
      });
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
