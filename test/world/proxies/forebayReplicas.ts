import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type RunningProcess, startProcess, untilReady } from "../../support/servers/command.ts";
import type { Lifespan } from "../../support/servers/redis.ts";
import type { Instance } from "./proxy.ts";

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const MAX_LINES = 40;
/** Time in which a process answers with the size of its heap. */
const HEAP_MS = 30_000;

export interface ForebayReplicasOptions {
  readonly count: number;
  /** Creates the configuration of a replica, except its ports. */
  readonly configOf: (index: number) => object;
  /** Name of a planted fault. */
  readonly planted: string | undefined;
  /** Called if a process ends that nobody killed. */
  readonly onUnexpectedEnd: ((text: string) => void) | undefined;
}

interface Slot {
  readonly name: string;
  readonly file: string;
  readonly lines: string[];
  starts: number;
  isUp: boolean;
  /** Of the newest process. Each chooses its port itself. */
  url: string;
  replica: RunningProcess | undefined;
  /** Called with the size of the heap that was asked for. */
  onHeap: (bytes: number) => void;
}

/** Processes of forebay that can be killed and started again. */
export class ForebayReplicas {
  readonly #options: ForebayReplicasOptions;
  readonly #slots: Slot[];
  readonly #launches = new Set<Promise<void>>();
  #isEnding = false;

  private constructor(options: ForebayReplicasOptions, slots: Slot[]) {
    this.#options = options;
    this.#slots = slots;
  }

  static async start(t: Lifespan, options: ForebayReplicasOptions): Promise<ForebayReplicas> {
    const folder = await mkdtemp(join(tmpdir(), "forebay-world-"));
    const slots = await Promise.all(
      Array.from({ length: options.count }, async (_, index): Promise<Slot> => {
        const server = { port: 0, opsPort: 0, drainDelayMs: 0 };
        const config = { ...options.configOf(index), server, log: { level: "info" } };
        const file = join(folder, `${index}.yaml`);
        await writeFile(file, JSON.stringify(config));
        const name = String.fromCharCode("a".charCodeAt(0) + index);
        const onHeap = (): void => undefined;
        return { name, file, lines: [], starts: 0, isUp: false, url: "", replica: undefined, onHeap };
      }),
    );
    const replicas = new ForebayReplicas(options, slots);
    t.after(async () => {
      await replicas.#end();
      await rm(folder, { recursive: true, force: true });
    });
    await Promise.all(slots.map((_, index) => replicas.launch(index)));
    return replicas;
  }

  get length(): number {
    return this.#slots.length;
  }

  /** Returns the processes that run, or all if none does. */
  instances(chain: string): readonly Instance[] {
    const up = this.#slots.filter(({ isUp }) => isUp);
    return (up.length === 0 ? this.#slots : up).map(({ name, url }) => ({ label: name, url: `${url}/${chain}` }));
  }

  /** Kills a process without a warning. */
  async kill(index: number): Promise<void> {
    const slot = this.#slots[index];
    if (slot?.replica !== undefined) {
      const { replica } = slot;
      slot.isUp = false;
      slot.replica = undefined;
      replica.signal("SIGKILL");
      await replica.ended;
    }
  }

  /** Sends a signal to a replica. It continues. */
  signal(index: number, signal: NodeJS.Signals): void {
    this.#slots[index]?.replica?.signal(signal);
  }

  /** Returns the bytes of each heap after a full collection, by replica and start. */
  async heaps(): Promise<Readonly<Record<string, number>>> {
    const sizes = this.#slots.map(async (slot, index) => {
      const { promise, resolve } = Promise.withResolvers<number>();
      slot.onHeap = resolve;
      this.signal(index, "SIGWINCH");
      const bytes = await Promise.race([promise, sleep(HEAP_MS, undefined, { ref: false })]);
      return bytes === undefined ? [] : [[`${slot.name}${slot.starts}`, bytes] as const];
    });
    return Object.fromEntries((await Promise.all(sizes)).flat());
  }

  async launch(index: number): Promise<void> {
    const slot = this.#slots[index];
    if (slot === undefined || this.#isEnding) {
      return;
    }
    const launch = this.#launch(slot);
    this.#launches.add(launch);
    await launch.finally(() => this.#launches.delete(launch));
  }

  async #launch(slot: Slot): Promise<void> {
    const { planted } = this.#options;
    const replica = await startProcess({
      args: ["--config", slot.file],
      nodeArgs: [
        ...["--expose-gc", "--import", pathOf("preload.ts")],
        ...(planted === undefined ? [] : ["--import", pathOf("../planted/plantFault.ts")]),
      ],
      env: planted === undefined ? process.env : { ...process.env, FAULT: planted },
      onLine: (line) => {
        if (line.startsWith('{"heapBytes"')) {
          slot.onHeap(JSON.parse(line).heapBytes);
          return;
        }
        slot.lines.push(line);
        slot.lines.splice(0, slot.lines.length - MAX_LINES);
      },
    });
    await untilReady(replica);
    slot.replica = replica;
    slot.url = replica.url;
    slot.starts++;
    slot.isUp = true;
    void replica.ended.then((code) => {
      if (slot.replica === replica && !this.#isEnding) {
        slot.isUp = false;
        this.#options.onUnexpectedEnd?.(`${slot.name} ended with ${code}: ${slot.lines.join("\n")}`);
      }
    });
  }

  async #end(): Promise<void> {
    this.#isEnding = true;
    // A process that nobody ends would keep this one alive.
    await Promise.allSettled(this.#launches);
    await Promise.all(
      this.#slots.map(async ({ replica }) => {
        replica?.signal("SIGKILL");
        await replica?.ended;
      }),
    );
  }
}
