#!/usr/bin/env node
// The command `forebay`. Plain JavaScript, because an older Node.js must be able to read this file.

const LEAST_MAJOR = 24;
/**
 * glibc reads these when a process starts. Without them, it retains the memory of freed buffers:
 * docs/performance.md, "Memory of the C library".
 */
const ALLOCATOR = { MALLOC_ARENA_MAX: "1", MALLOC_MMAP_THRESHOLD_: "131072", MALLOC_TRIM_THRESHOLD_: "131072" };
const SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"];

const majorOf = (version) => Number(version.split(".")[0]);

/** Returns the path of the runtime that is installed as a package. Undefined if no package of a fitting version is installed. */
const findRuntime = async () => {
  const { createRequire } = await import("node:module");
  const { dirname, join } = await import("node:path");
  const require = createRequire(import.meta.url);
  try {
    const manifest = require.resolve(`node-${process.platform}-${process.arch}/package.json`);
    return majorOf(require(manifest).version) >= LEAST_MAJOR ? join(dirname(manifest), "bin/node") : undefined;
  } catch {
    return undefined;
  }
};

/** Runs forebay in another process, which gets the signals of this one. This process ends as that one does. */
const runWith = async (runtime) => {
  const { spawn } = await import("node:child_process");
  const { fileURLToPath } = await import("node:url");
  const child = spawn(runtime, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: "inherit" });
  for (const signal of SIGNALS) {
    process.on(signal, () => child.kill(signal));
  }
  child.on("exit", (code, signal) => {
    if (signal === null) {
      process.exit(code);
    }
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
};

const runElsewhere = async () => {
  const runtime = await findRuntime();
  if (runtime !== undefined) {
    await runWith(runtime);
    return;
  }
  process.stderr.write(
    `forebay: Node.js ${LEAST_MAJOR} or later is needed. This is ${process.versions.node}, ${process.execPath}.\n`,
  );
  process.exitCode = 1;
};

/** Whether this process still needs the variables. A channel to a parent would not survive `execve`. */
const needsAllocator = () =>
  process.platform === "linux" &&
  process.channel === undefined &&
  !Object.keys(process.env).some((name) => name.startsWith("MALLOC_") || name === "GLIBC_TUNABLES");

/** Begins this program again, as the same process. */
const beginAgain = () =>
  process.execve(process.execPath, [process.execPath, ...process.execArgv, ...process.argv.slice(1)], {
    ...process.env,
    ...ALLOCATOR,
  });

if (majorOf(process.versions.node) >= LEAST_MAJOR) {
  if (needsAllocator()) {
    beginAgain();
  }
  import("./bin.ts");
} else {
  runElsewhere();
}
