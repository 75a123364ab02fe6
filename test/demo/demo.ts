import { DEMO_HELP, type DemoOptions, parseDemoOptions } from "./demoOptions.ts";
import { findPorts } from "./ports.ts";

/** `npm run demo`: two real nodes, a sequencer feed, wallets, and forebay in front of them. No Redis, no internet. */

const PARENT_MS = 500;
const SAME_CTRL_C_MS = 1_000;

/** npm may be ended without a signal to its children, at any time. They get another parent then. */
const parent = process.ppid;

const fail = (error: unknown): never => {
  process.stderr.write(`demo: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
};

const readOptions = (): DemoOptions | "help" => {
  try {
    return parseDemoOptions(process.argv.slice(2));
  } catch (error) {
    return fail(error);
  }
};

/** Aborts on a signal, once npm has ended, or once nobody reads the output. A second Ctrl-C ends the process at once. */
const createEnd = (): AbortController => {
  const ending = new AbortController();
  let abortedMs = Number.POSITIVE_INFINITY;
  const end = (): void => {
    abortedMs = Math.min(abortedMs, performance.now());
    ending.abort();
  };
  process.on("SIGTERM", end).on("SIGHUP", end);
  process.on("SIGINT", () => {
    // npm may send the same Ctrl-C once more.
    if (performance.now() - abortedMs > SAME_CTRL_C_MS) {
      process.exit(1);
    }
    end();
  });
  process.stdout.on("error", end);
  setInterval(() => process.ppid === parent || end(), PARENT_MS).unref();
  return ending;
};

const options = readOptions();
if (options === "help") {
  process.stdout.write(`${DEMO_HELP}\n`);
} else {
  const ending = createEnd();
  const ports = await findPorts(options.port).catch(fail);
  // Faults of options load no service.
  const { playDemo } = await import("./play.ts");
  await playDemo(options, ports, ending).catch((error: unknown) => (ending.signal.aborted ? undefined : fail(error)));
}
process.exit(0);
