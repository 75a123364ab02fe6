import { Channel, Moved } from "../threads/channel.ts";
import type { ThreadTask } from "../threads/threadTask.ts";
import type { JobFunctions } from "../threads/workerSlot.ts";
import { formatPart, type PartJob } from "./provenParts.ts";

const run = (job: PartJob): Moved<Uint8Array> | undefined => {
  const part = formatPart(job);
  // An idle thread collects no garbage.
  for (const bytes of [job.body, job.receipts]) {
    if (bytes?.buffer instanceof ArrayBuffer) {
      bytes.buffer.transfer(0);
    }
  }
  return part && new Moved(part, [part.buffer]);
};

/** The code of the thread that formats proven parts of blocks. */
export const provenTask: ThreadTask = (port) => {
  new Channel<Record<string, never>, JobFunctions>(port, { run: (job) => run(job as PartJob) });
};
