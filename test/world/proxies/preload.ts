import { writeSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

/**
 * Preloaded with `--import` in each replica. Each SIGUSR2 moves the clock of the process, as a wrong time server does.
 * After SIGWINCH, it writes the size of its heap after a full collection.
 */
const JUMPS_MS = [3_600_000, -3_600_000, 86_400_000, -60_000, 0];
const RealDate = Date;
let jumps = 0;
let offsetMs = 0;

class JumpingDate extends RealDate {
  constructor(...values: readonly unknown[]) {
    if (values.length === 0) {
      super(JumpingDate.now());
    } else {
      super(...(values as [number]));
    }
  }

  static override now(): number {
    return RealDate.now() + offsetMs;
  }
}

globalThis.Date = JumpingDate as DateConstructor;
if (isMainThread) {
  process.on("SIGUSR2", () => {
    offsetMs = JUMPS_MS[jumps++ % JUMPS_MS.length] ?? 0;
  });
  process.on("SIGWINCH", () => {
    globalThis.gc?.();
    writeSync(1, `${JSON.stringify({ heapBytes: process.memoryUsage().heapUsed })}\n`);
  });
}
