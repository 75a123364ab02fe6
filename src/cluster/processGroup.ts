import cluster, { type Worker } from "node:cluster";
import { fileURLToPath } from "node:url";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { ChainHost } from "./chainHost.ts";
import type { PlainMetrics } from "./chainProtocol.ts";
import { closeLostConnections } from "./lostConnections.ts";
import { type ServingChannel, ServingMember } from "./servingMember.ts";

export interface ProcessGroupOptions {
  /** The module that a serving process runs. */
  readonly entry: URL;
  /** Number of serving processes. */
  readonly processes: number;
  /** The configuration of each serving process. */
  readonly config: unknown;
  /** Returns the data of the status page. */
  status(): Promise<string>;
  /** Returns the host of a chain by its key. */
  host(chain: string): ChainHost | undefined;
  /** Offers more functions to a new process. The returned function is called when the process has ended. */
  connect(channel: ServingChannel): () => void;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

/** One serving process. Its number stays the same if it is replaced. */
interface RunningProcess {
  readonly number: number;
  readonly worker: Worker;
  readonly member: ServingMember;
  readonly startedMs: number;
  readonly exited: Promise<void>;
  /** Resolves when the process accepts no connections any more. */
  readonly stopped: PromiseWithResolvers<void>;
  isListening: boolean;
}

const PING_MS = 5_000;
/** A process that does not answer for this time is killed and replaced. */
const HUNG_MS = 30_000;
/** The delay before a replacement. It doubles while processes end within STABLE_MS. */
const FIRST_DELAY_MS = 50;
const MAX_DELAY_MS = 10_000;
const STABLE_MS = 10_000;
/** Time for a process to end after its last request. */
const END_GRACE_MS = 3_000;
const METRICS_TIMEOUT_MS = 2_000;

/** The serving processes of this machine: starts them, replaces those that end, and ends all of them together. */
export class ProcessGroup {
  readonly #options: ProcessGroupOptions;
  readonly #processes = new Map<number, RunningProcess>();
  readonly #started = Promise.withResolvers<void>();
  readonly #pinging: NodeJS.Timeout;
  #config: unknown;
  #port: number | undefined;
  #delayMs = FIRST_DELAY_MS;
  #isStarted = false;
  #isEnding = false;

  constructor(options: ProcessGroupOptions) {
    this.#options = options;
    this.#config = options.config;
    cluster.setupPrimary({ exec: fileURLToPath(options.entry), args: [], serialization: "advanced" });
    this.#pinging = setInterval(() => this.#pingAll(), PING_MS);
    this.#pinging.unref();
  }

  /** The port of all serving processes. */
  get port(): number {
    return this.#port ?? 0;
  }

  /** All processes have accepted connections once. */
  get isStarted(): boolean {
    return this.#isStarted;
  }

  /** Resolves when all processes accept connections. Rejects if one cannot listen. */
  async start(): Promise<void> {
    for (let number = 1; number <= this.#options.processes; number++) {
      this.#fork(number);
    }
    await this.#started.promise;
    this.#isStarted = true;
  }

  /** Applies a configuration, which the main process has applied, to all processes. One that cannot is replaced. */
  async reload(config: unknown): Promise<void> {
    this.#config = config;
    await Promise.all([...this.#processes.values()].map((running) => this.#reloadOne(running, config)));
  }

  /** All processes drain and end. */
  startDraining(): void {
    this.#isEnding = true;
    for (const { member, worker, isListening } of this.#processes.values()) {
      if (isListening) {
        member.channel.notify("drain", null);
      } else {
        worker.process.kill("SIGKILL");
      }
    }
  }

  /** Resolves when all processes have ended. Kills those that drain for longer than `timeoutMs`, or all if none drains. */
  async close(timeoutMs: number): Promise<void> {
    const isDraining = this.#isEnding;
    this.#isEnding = true;
    clearInterval(this.#pinging);
    const running = [...this.#processes.values()];
    const killAll = (): void => {
      for (const { worker } of running) {
        worker.process.kill("SIGKILL");
      }
    };
    const timer = setTimeout(killAll, isDraining ? timeoutMs + END_GRACE_MS : 0);
    await Promise.all(running.map(({ exited }) => exited));
    clearTimeout(timer);
  }

  /** Returns the metrics of each process by its number. A process that does not answer is left out. */
  metrics(): Promise<ReadonlyMap<number, PlainMetrics>> {
    return this.#collect((channel, signal) => channel.call("metrics", null, { signal }));
  }

  /** Lets all processes report their usage by key. Resolves when the reports have come. */
  async collectUsage(): Promise<void> {
    await this.#collect((channel, signal) => channel.call("reportUsage", null, { signal }));
  }

  /** Calls each process. Returns the results by its number. A process that does not answer is left out. */
  async #collect<T>(
    read: (channel: ServingChannel, signal: AbortSignal) => Promise<T>,
  ): Promise<ReadonlyMap<number, T>> {
    const signal = AbortSignal.timeout(METRICS_TIMEOUT_MS);
    const all = await Promise.all(
      [...this.#processes.values()].map(async ({ number, member }) => {
        const result = await read(member.channel, signal).catch(() => undefined);
        return result === undefined ? [] : [[number, result] as const];
      }),
    );
    return new Map(all.flat());
  }

  #fork(number: number): void {
    const { host, telemetry } = this.#options;
    const worker = cluster.fork();
    closeLostConnections(worker);
    const { promise: exited, resolve } = Promise.withResolvers<void>();
    const stopped = Promise.withResolvers<void>();
    const member = new ServingMember({
      // A process that ends takes no messages; its exit follows.
      post: (messages) => worker.isConnected() && worker.send(messages as never, () => undefined),
      host,
      onError: (err) => telemetry.log.error({ err, process: number }, "a message of a serving process failed"),
    });
    const running: RunningProcess = {
      number,
      worker,
      member,
      startedMs: performance.now(),
      exited,
      stopped,
      isListening: false,
    };
    this.#processes.set(number, running);
    member.channel.offer({
      begin: () => ({ config: this.#config, processes: this.#options.processes }),
      status: () => this.#options.status(),
      listening: ({ port }) => this.#onListening(running, port),
      stopListening: () => this.#onStopped(running),
      failed: ({ message }) => this.#started.reject(new Error(message)),
    });
    const disconnect = this.#options.connect(member.channel);
    worker.on("message", (message: unknown) => member.channel.receive(message));
    worker.on("error", (err) => telemetry.log.debug({ err, process: number }, "a message was not sent"));
    worker.on("exit", (code, signal) => {
      member.close();
      disconnect();
      resolve();
      stopped.resolve();
      this.#onExit(running, signal ?? code);
    });
  }

  async #reloadOne({ number, worker, member }: RunningProcess, config: unknown): Promise<void> {
    try {
      await member.channel.call("reload", { config });
    } catch (err) {
      if (worker.isConnected()) {
        this.#options.telemetry.log.error({ err, process: number }, "a serving process did not reload: it is killed");
        worker.process.kill("SIGKILL");
      }
    }
  }

  #onListening(running: RunningProcess, port: number): void {
    this.#port = port;
    running.isListening = true;
    if (this.#isEnding) {
      running.member.channel.notify("drain", null);
    }
    this.#report();
    const listening = [...this.#processes.values()].filter(({ isListening }) => isListening);
    if (listening.length === this.#options.processes) {
      this.#started.resolve();
    }
  }

  /** Resolves when no process accepts connections any more. */
  async #onStopped(running: RunningProcess): Promise<void> {
    running.stopped.resolve();
    await Promise.all([...this.#processes.values()].map(({ stopped }) => stopped.promise));
  }

  #onExit(running: RunningProcess, reason: string | number): void {
    const { log, metrics } = this.#options.telemetry;
    const { number, startedMs } = running;
    this.#processes.delete(number);
    this.#report();
    if (this.#isEnding) {
      return;
    }
    metrics.processRestarts.inc();
    log.error({ process: number, reason }, "a serving process ended: it is replaced");
    const livedMs = performance.now() - startedMs;
    this.#delayMs = livedMs > STABLE_MS ? FIRST_DELAY_MS : Math.min(this.#delayMs * 2, MAX_DELAY_MS);
    setTimeout(() => !this.#isEnding && this.#fork(number), this.#delayMs);
  }

  #pingAll(): void {
    for (const { number, worker, member, isListening } of this.#processes.values()) {
      if (!isListening) {
        continue;
      }
      member.channel.call("ping", null, { signal: AbortSignal.timeout(HUNG_MS) }).catch(() => {
        if (worker.isConnected()) {
          this.#options.telemetry.log.error({ process: number }, "a serving process hangs: it is killed");
          worker.process.kill("SIGKILL");
        }
      });
    }
  }

  #report(): void {
    const { metrics } = this.#options.telemetry;
    metrics.servingProcesses.set([...this.#processes.values()].filter(({ isListening }) => isListening).length);
  }
}
