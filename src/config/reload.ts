import { readFileSync, unwatchFile, watchFile } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { ConfigError, filesNamedIn } from "./readConfig.ts";
import type { Config } from "./schema.ts";

export interface ReloadOptions {
  /** File to watch, with the files that it names; undefined if there are only flags. */
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
 * The file, and those that it names as `${file:/path}`, are watched by `stat`, through symbolic links.
 * Kubernetes swaps a link to change a mounted ConfigMap or Secret, and `stat` sees that on any file system.
 */
export class Reload {
  readonly #options: ReloadOptions;
  readonly #onStat = (): void => this.#runIfChanged();
  /** The texts of the last reload by file, the configuration first. */
  #texts: ReadonlyMap<string, string | undefined> = new Map();
  #last = Promise.resolve();
  #current: { readonly config: Config; readonly ending: AbortController } | undefined;

  constructor(options: ReloadOptions) {
    this.#options = options;
    this.#watch(this.#readTexts());
  }

  /**
   * Reads and applies the configuration now, even if it is unchanged. Never rejects.
   * A reload of another configuration that still waits for its nodes is cancelled.
   */
  run(): Promise<void> {
    const { read, telemetry } = this.#options;
    this.#watch(this.#readTexts());
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
    // One at a time, so each starts from the result of the last.
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
    this.#watch(new Map());
  }

  #readTexts(): ReadonlyMap<string, string | undefined> {
    const { file } = this.#options;
    const text = file === undefined ? undefined : textOf(file);
    const named = filesNamedIn(text ?? "").map((name) => [name, textOf(name)] as const);
    return new Map(file === undefined ? [] : [[file, text], ...named]);
  }

  /** Watches the files of `texts`, and no others. */
  #watch(texts: ReadonlyMap<string, string | undefined>): void {
    const { pollMs = DEFAULT_POLL_MS } = this.#options;
    for (const file of this.#texts.keys()) {
      if (!texts.has(file)) {
        unwatchFile(file, this.#onStat);
      }
    }
    for (const file of texts.keys()) {
      if (!this.#texts.has(file)) {
        watchFile(file, { interval: pollMs, persistent: false }, this.#onStat);
      }
    }
    this.#texts = texts;
  }

  #runIfChanged(): void {
    const { file = "" } = this.#options;
    const texts = this.#readTexts();
    if (texts.get(file) !== undefined && !isDeepStrictEqual(texts, this.#texts)) {
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
