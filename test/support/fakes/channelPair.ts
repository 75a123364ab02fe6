import { deserialize, serialize } from "node:v8";
import type { MainFunctions, ServingFunctions } from "../../../src/cluster/chainProtocol.ts";
import { ProcessChannel } from "../../../src/cluster/processChannel.ts";

/** Creates the channels between a serving process and the main process. `sends` counts what the serving process sends. */
export const createChannelPair = () => {
  const sends = { toMain: 0 };
  const fail = (error: unknown): never => {
    throw error;
  };
  const serving: ProcessChannel<MainFunctions, ServingFunctions> = new ProcessChannel((messages) => {
    sends.toMain++;
    const received: unknown = deserialize(serialize(messages));
    setImmediate(() => main.receive(received));
  }, fail);
  const main: ProcessChannel<ServingFunctions, MainFunctions> = new ProcessChannel((messages) => {
    const received: unknown = deserialize(serialize(messages));
    setImmediate(() => serving.receive(received));
  }, fail);
  return { serving, main, sends };
};
