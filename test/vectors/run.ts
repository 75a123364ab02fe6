import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { run } from "node:test";
import { vectorFolder } from "./vectorFolder.ts";

/** `npm run test:vectors [-- name]`: a line for each vector that differs, the number excepted, and the totals. */
const print = (line: string) => process.stdout.write(`${line}\n`);

if (!existsSync(vectorFolder)) {
  print(`There are no vectors: ${vectorFolder} does not exist. VECTORS=<folder> names another folder.`);
  process.exit(1);
}

const wanted = process.argv[2] ?? "";
const files = globSync(join(import.meta.dirname, "*.vectors.ts"))
  .filter((file) => file.includes(wanted))
  .sort();
const totals = { passed: 0, failed: 0, skipped: 0 };
/** A vector that runs several times counts as one exception. */
const excepted = new Set<string>();

const stream = run({ files, concurrency: 1, timeout: 15 * 60_000 });
stream.on("test:pass", ({ name, skip, details }) => {
  if (details.type === "suite") {
    return;
  }
  if (skip !== undefined) {
    totals.skipped++;
    print(`skipped  ${name}`);
  } else {
    totals.passed++;
  }
});
stream.on("test:fail", ({ name, details }) => {
  if (details.type === "suite") {
    return;
  }
  totals.failed++;
  const cause = details.error.cause;
  print(
    `differs  ${name}: ${(cause instanceof Error ? cause.message : String(details.error.message)).slice(0, 1_000)}`,
  );
});
stream.on("test:diagnostic", ({ message }) => {
  if (!message.startsWith("excepted")) {
    return;
  }
  const { vector = "", reason = "" } = /^excepted {2}(?<vector>\S+).*?: (?<reason>.*)$/.exec(message)?.groups ?? {};
  if (!excepted.has(vector)) {
    print(`excepted ${vector}: ${reason}`);
  }
  excepted.add(vector);
});
stream.on("test:stderr", ({ message }) => process.stderr.write(message));

for await (const _ of stream) {
}
print(`${excepted.size} excepted`);
print(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
process.exitCode = totals.failed > 0 || totals.passed === 0 ? 1 : 0;
