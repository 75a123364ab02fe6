import { setTimeout as sleep } from "node:timers/promises";

const STEP_MS = 50;
/** Time in which a process answers with the size of its heap. */
const HEAP_MS = 30_000;

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** The processes of one replica, in the order of their starts: the main process, then those that serve. */
export class ReplicaProcesses {
  readonly #pids: number[] = [];
  readonly #heaps = new Map<number, (bytes: number) => void>();
  /** Serving processes that the run killed, and whose end forebay has not logged yet. */
  #expectedEnds = 0;

  /** Takes a line of the log. Returns false if it is one of forebay. */
  readLine(line: string): boolean {
    if (line.startsWith('{"startedProcess"')) {
      this.#pids.push(Number(JSON.parse(line).startedProcess));
      return true;
    }
    if (line.startsWith('{"heapBytes"')) {
      const { heapBytes, heapOf } = JSON.parse(line);
      this.#heaps.get(heapOf)?.(heapBytes);
      return true;
    }
    return false;
  }

  /** Whether a line says that a serving process ended which the run did not kill. */
  isUnexpectedEnd(line: string): boolean {
    if (!line.includes('"a serving process ended') && !line.includes('"a serving process hangs')) {
      return false;
    }
    this.#expectedEnds--;
    return this.#expectedEnds < 0;
  }

  signal(signal: NodeJS.Signals): void {
    for (const pid of this.#pids.filter(isRunning)) {
      process.kill(pid, signal);
    }
  }

  /** Kills the newest serving process, if there are several processes. */
  killServing(): void {
    const [, ...serving] = this.#pids.filter(isRunning);
    const pid = serving.at(-1);
    if (pid !== undefined) {
      this.#expectedEnds++;
      process.kill(pid, "SIGKILL");
    }
  }

  /** Waits until no process runs. Returns false if one does after a time. */
  async haveEnded(limitMs: number): Promise<boolean> {
    const endMs = performance.now() + limitMs;
    while (this.#pids.some(isRunning)) {
      if (performance.now() > endMs) {
        return false;
      }
      await sleep(STEP_MS);
    }
    this.#pids.length = 0;
    this.#expectedEnds = 0;
    return true;
  }

  /** Returns the bytes of each heap after a full collection, by process id. */
  async heaps(): Promise<ReadonlyMap<number, number>> {
    const sizes = this.#pids.filter(isRunning).map(async (pid) => {
      const { promise, resolve } = Promise.withResolvers<number>();
      this.#heaps.set(pid, resolve);
      process.kill(pid, "SIGWINCH");
      const bytes = await Promise.race([promise, sleep(HEAP_MS, undefined, { ref: false })]);
      this.#heaps.delete(pid);
      return bytes === undefined ? [] : [[pid, bytes] as const];
    });
    return new Map((await Promise.all(sizes)).flat());
  }
}
