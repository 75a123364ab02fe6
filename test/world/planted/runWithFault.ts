import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { LONG_FAULTS } from "./longFaults.ts";

export interface FaultRun {
  /** Values that differed from the node's, as the run or the service itself found. */
  readonly differences: number;
  readonly output: string;
}

/** The result of the run, its last line. */
interface Result {
  readonly variants: Readonly<
    Record<
      string,
      {
        readonly differences: readonly unknown[];
        readonly foundByService?: number;
        readonly authorizations?: { readonly differences: readonly unknown[] };
      }
    >
  >;
}

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

/** Runs a test file in a process whose modules have the fault. A fault that does not fit its module is no failure of the test. */
export const testWithFault = async (file: string, fault: string, testName = ""): Promise<FaultRun> => {
  const pattern = testName === "" ? [] : [`--test-name-pattern=^${testName}`];
  const args = [...pattern, "--import", pathOf("plantFault.ts"), pathOf(`../../../${file}`)];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, FAULT: fault },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
  const [code] = await once(child, "close");
  const output = Buffer.concat(chunks).toString();
  return { differences: code !== 0 && !output.includes("does not fit") ? 1 : 0, output };
};

/** Runs the long run of a planted fault on its variant, or else its test, in a process whose modules have the fault. */
export const runWithFault = async (fault: string, seconds: number): Promise<FaultRun> => {
  const planted = LONG_FAULTS[fault];
  if (planted === undefined) {
    throw new Error(`no fault is called "${fault}": ${Object.keys(LONG_FAULTS).join(", ")}`);
  }
  if (planted.test !== undefined && planted.run === undefined) {
    return testWithFault(planted.test, fault, planted.testName);
  }
  const args = [
    "--import",
    pathOf("plantFault.ts"),
    pathOf("../../long/run.ts"),
    planted.run ?? "state-differential",
    "--seconds",
    `${seconds}`,
  ];
  const env = { ...process.env, FAULT: fault, PLANTED: "1", VARIANT: planted.variant };
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
  await once(child, "close");
  const output = Buffer.concat(chunks).toString();
  const last = output.trim().split("\n").at(-1) ?? "";
  if (!last.startsWith('{"claim"')) {
    return { differences: 0, output };
  }
  const { variants }: Result = JSON.parse(last);
  const found = Object.values(variants).map(({ differences, foundByService = 0, authorizations }) => {
    const compared = differences.length + (authorizations?.differences.length ?? 0);
    return foundByService + (planted.isFoundByService ? 0 : compared);
  });
  return { differences: found.reduce((sum, count) => sum + count, 0), output };
};
