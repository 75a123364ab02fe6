import { readFileSync, unwatchFile, watchFile } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { ConfigError } from "./readConfig.ts";
import type { Config } from "./schema.ts";

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
 * The reload of a changed configuration without a restart. An invalid configuration is rejected as a whole.
 * The file is watched by `stat`, through symbolic links.
 * Kubernetes swaps a link to change a mounted ConfigMap, and `stat` sees that on any file system.
 */
export class Reload {
  readonly #options: ReloadOptions;
  readonly #onStat = (): void => this.#runIfChanged();
  #lastText: string | undefined;
  #last = Promise.resolve();
  #current: { readonly config: Config; readonly ending: AbortController } | undefined;

  constructor(options: ReloadOptions) {
    this.#options = options;
    const { file, pollMs = DEFAULT_POLL_MS } = options;
    if (file !== undefined) {
      this.#lastText = textOf(file);
      watchFile(file, { interval: pollMs, persistent: false }, this.#onStat);
    }
  }

  /**
   * Reads and applies the configuration now, even if it is unchanged. Never rejects.
   * A reload of another configuration that still waits for its nodes is cancelled.
   */
  run(): Promise<void> {
    const { file, read, telemetry } = this.#options;
    if (file !== undefined) {
      this.#lastText = textOf(file);
    }
    let config: Config;
    try {
      config = read();
    } catch (error) {
      refuse(telemetry, error);
      return Promise.resolve();
    }
    // The same configuration would begin to wait for the same nodes.
    if (this.#current !== undefined && isDeepStrictEqual(this.#current.config, config)) {
      return this.#last;
    }
    this.#current?.ending.abort();
    const own = { config, ending: new AbortController() };
    this.#current = own;
    // One at a time, so that each starts from the result of the last.
    this.#last = this.#last
      .then(() => this.#apply(config, own.ending.signal))
      .finally(() => {
        if (this.#current === own) {
          this.#current = undefined;
        }
      });
    return this.#last;
  }

  close(): void {
    const { file } = this.#options;
    if (file !== undefined) {
      unwatchFile(file, this.#onStat);
    }
  }

  #runIfChanged(): void {
    const { file } = this.#options;
    const text = file === undefined ? undefined : textOf(file);
    if (text !== undefined && text !== this.#lastText) {
      void this.run();
    }
  }

  async #apply(config: Config, signal: AbortSignal): Promise<void> {
    const { apply, telemetry } = this.#options;
    const { log, metrics } = telemetry;
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
  }
}

/** Options of these sections apply only after a restart. */
const FIXED_SECTIONS = ["server", "cache", "usage", "tracing"] as const;

/** Returns the changed options that a reload does not apply, such as `server.port`. */
export const changedFixedOptions = (before: Config, after: Config): readonly string[] =>
  FIXED_SECTIONS.flatMap((section) => {
    const old = new Map<string, unknown>(Object.entries(before[section] ?? {}));
    const now = after[section] ?? {};
    const changed = Object.entries(now).filter(([key, value]) => !isDeepStrictEqual(old.get(key), value));
    const removed = [...old.keys()].filter((key) => !(key in now));
    return [...changed.map(([key]) => key), ...removed].map((key) => `${section}.${key}`);
  });
