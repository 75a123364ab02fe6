import { evmTask } from "../runs/evmTask.ts";
import type { ThreadTask } from "../threads/threadTask.ts";
import { MessageExecutor } from "./messageExecutor.ts";

/** The task of a thread that executes the messages of one chain. */
export const messageTask: ThreadTask = (port, data) => {
  const executor = new MessageExecutor();
  return evmTask({ message: (input, context) => executor.run(input, context) })(port, data);
};
