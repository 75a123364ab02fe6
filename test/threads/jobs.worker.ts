import { Channel } from "../../src/threads/channel.ts";
import { startTask } from "../../src/threads/threadTask.ts";
import type { JobFunctions } from "../../src/threads/workerSlot.ts";

/** Jobs that are not of the EVM. Bytes are counted, with all of their memory. `ask` returns the main thread's value, `throw` throws, `exit` ends the thread. */
await startTask((port) => {
  new Channel<Record<string, never>, JobFunctions>(port, {
    run: (input, call) => {
      if (input === "throw") {
        throw new Error("thrown by the job");
      }
      if (input === "exit") {
        process.exit(1);
      }
      const { bytes } = Object(input);
      return bytes instanceof Uint8Array ? [bytes.byteLength, bytes.buffer.byteLength] : call.ask(input);
    },
  });
});
