import { setTimeout as sleep } from "node:timers/promises";
import { createActs } from "./acts.ts";
import type { DemoOptions } from "./demoOptions.ts";
import type { Ports } from "./ports.ts";
import { formatSummary, type Shown, type ShownAct } from "./screen.ts";
import { type Stack, startStack } from "./stack.ts";
import { createPlainTerminal, createScreenTerminal, type Terminal } from "./terminal.ts";
import { createTries, runTry, type Tried } from "./tries.ts";
import { createWatch } from "./watch.ts";

const SECOND_MS = 1_000;
const READ_MS = 500;
const ACTS_AFTER_MS = 20_000;

/** Ends when the signal aborts, or when a part fails. */
const perform = async (
  stack: Stack,
  terminal: Terminal,
  signal: AbortSignal,
  { acts, tries }: { readonly acts: ShownAct[]; readonly tries: Tried[] },
): Promise<void> => {
  await sleep(ACTS_AFTER_MS, undefined, { signal });
  for (const { begins, play } of createActs(stack, signal)) {
    acts.push({ text: begins, isOver: false });
    const result = { text: await play(), isOver: true };
    acts.splice(-1, 1, result);
    terminal.act(result);
  }
  for (const each of createTries(stack)) {
    const tried = await runTry(each);
    signal.throwIfAborted();
    tries.push(tried);
  }
  terminal.tries(tries);
};

/** Runs the demo until `ending` aborts, which it does itself after the given time. Rejects if a part fails. Nothing of it is left then. */
export const playDemo = async (options: DemoOptions, ports: Ports, ending: AbortController): Promise<void> => {
  const { signal } = ending;
  const output = process.stdout;
  const say = (text: string): void => void output.write(`${text}\n`);
  say("starting two nodes, a sequencer feed, and forebay ...");
  const stack = await startStack({ ports, rate: options.rate });
  const watch = createWatch(stack);
  const terminal =
    options.plain || !output.isTTY ? createPlainTerminal((text) => output.write(text)) : createScreenTerminal(output);
  if (options.seconds !== undefined) {
    setTimeout(() => ending.abort(), options.seconds * SECOND_MS).unref();
  }
  const progress = { acts: [], tries: [] };
  const shown = (): Shown => ({ ...watch.shown(), ...progress });
  const show = async (): Promise<void> => {
    terminal.begin(shown());
    for (;;) {
      await watch.read();
      terminal.show(shown());
      await sleep(READ_MS, undefined, { signal });
    }
  };
  try {
    await Promise.all([show(), perform(stack, terminal, signal, progress)]);
  } catch (error) {
    if (!signal.aborted) {
      throw error;
    }
  } finally {
    const last = shown();
    terminal.end(last);
    await stack.close();
    say(formatSummary(last));
    const failure = stack.lastFailure();
    say(failure === undefined ? "ended" : `the last failed call: ${failure}\nended`);
  }
};
