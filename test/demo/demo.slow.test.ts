import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execPath } from "node:process";
import { createInterface } from "node:readline";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { until } from "../support/clients/until.ts";

const DEMO = fileURLToPath(new URL("demo.ts", import.meta.url));
/** Long, for a machine that does much more than this. */
const LINE_TIMEOUT_MS = 600_000;
const SHOWN = /^ *(\d+) s .* saved (-?[\d.]+) %/;

/** Starts a demo in a process group and with folders of its own, as in a terminal. */
const startDemo = (t: TestContext, ...args: readonly string[]) => {
  const folder = mkdtempSync(join(tmpdir(), "demo-"));
  const { NODE_COMPILE_CACHE = join(tmpdir(), "node-compile-cache") } = process.env;
  const child = spawn(execPath, [DEMO, "--port", "0", "--plain", ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, TMPDIR: folder, HOME: folder, NODE_COMPILE_CACHE },
    detached: true,
  });
  const signal = (name: NodeJS.Signals | 0): boolean => {
    try {
      return process.kill(-(child.pid ?? 0), name);
    } catch {
      return false;
    }
  };
  t.after(() => {
    signal("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  const ended = once(child, "close");
  return {
    lines,
    signal,
    /** Resolves once a line satisfies the condition. */
    line: async (isIt: (line: string) => boolean): Promise<void> => {
      const timeout = AbortSignal.timeout(LINE_TIMEOUT_MS);
      while (!lines.some(isIt)) {
        const [event] = await Promise.race([
          once(reader, "line", { signal: timeout }).catch(() => ["timeout"]),
          ended.then(() => ["end"]),
        ]);
        assert.ok(event !== "timeout" && event !== "end", `no such line:\n${lines.join("\n")}`);
      }
    },
    /** Waits for the end. Nothing may be left. */
    end: async (): Promise<void> => {
      const [code] = await ended;
      assert.equal(code, 0, lines.join("\n"));
      await until(() => !signal(0), "no process is left");
      assert.deepEqual(readdirSync(folder), []);
      assert.equal(lines.at(-1), "ended");
    },
  };
};

test("after 60 s, 90 % of the calls are saved, and no call failed during the demo's own faults", async (t) => {
  const demo = startDemo(t);
  await demo.line((line) => line === "Ctrl-C ends everything.");
  const [killed = "", restarted = "", logs = ""] = demo.lines.filter((line) => line.startsWith("+ "));
  assert.match(killed, /^\+ node "own" was killed for .*: "backup" took over, [1-9][\d,]* calls of wallets, 0 failed$/);
  assert.match(restarted, /^\+ forebay restarted in .*: [\d.]+ % of the units before, [\d.]+ % after, 0 failed$/);
  assert.match(
    logs,
    /^\+ 50,000 blocks, 1,000 logs \(the node alone refuses the query\): [1-9]\d* calls .*; again: \d calls /,
  );
  const answers = demo.lines.flatMap((line, at) => (line.startsWith("curl ") ? [demo.lines[at + 1]?.trim()] : []));
  assert.equal(answers.length, 5);
  assert.ok(!answers.some((answer) => answer === "" || answer?.startsWith("no answer")), answers.join("\n"));
  assert.ok(answers.includes("1000"));
  // On a busy machine, forebay needs more than 60 s.
  await demo.line((line) => {
    const [, seconds, share] = SHOWN.exec(line) ?? [];
    return Number(seconds) >= 60 && Number(share) >= 90;
  });
  demo.signal("SIGINT");
  await demo.end();
  assert.match(demo.lines.at(-2) ?? "", /^after \d+ s: [\d,]+ calls of wallets, /);
});

test("the demo ends by itself after its time, with a summary", async (t) => {
  // The summary counts from the first call, which comes a moment after the timer has begun.
  const demo = startDemo(t, "--seconds", "4");
  await demo.end();
  assert.match(demo.lines.at(-2) ?? "", /^after [3-9]\d* s: [\d,]+ calls of wallets, /);
});

test("the demo ends with its parent, and with it the nodes", async () => {
  // The parent starts the demo, prints its process id, and is killed without a signal to its children.
  const script = `
    const child = require("node:child_process").spawn(process.execPath, [${JSON.stringify(DEMO)}, "--port", "0", "--plain"], { stdio: ["ignore", "inherit", "inherit"] });
    console.log("pid " + child.pid);
  `;
  const parent = spawn(execPath, ["--eval", script], { stdio: ["ignore", "pipe", "inherit"] });
  let last = "";
  for await (const line of createInterface({ input: parent.stdout })) {
    last = line;
    if (line.startsWith("forebay: ")) {
      parent.kill("SIGKILL");
    }
  }
  // The pipe ends once the last process that holds it has ended.
  assert.equal(last, "ended");
});
