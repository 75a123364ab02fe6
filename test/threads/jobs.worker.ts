import { serveJobs } from "../../src/threads/serveJobs.ts";
import { startTask } from "../../src/threads/startTask.ts";

/** Jobs that are not of the EVM: `ask` returns the main thread's value, `throw` throws, `exit` ends the thread. */
await startTask((port) =>
  serveJobs(port, async (input, request) => {
    if (input === "throw") {
      throw new Error("thrown by the job");
    }
    if (input === "exit") {
      process.exit(1);
    }
    return request(input);
  }),
);
