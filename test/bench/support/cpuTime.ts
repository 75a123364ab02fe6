import { readFileSync } from "node:fs";

/** USER_HZ, which is always 100 in the interface of Linux. */
const TICKS_PER_SECOND = 100;

/** Returns the name under which the CPU time of the main thread alone is read. */
export const mainThreadOf = (pid: number): string => `${pid}/task/${pid}`;

/** Reads the CPU time of a process with all its threads, or of a thread, user and system. Resolution: 10 ms. */
export const cpuSeconds = (pid: number | string): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  // The name in the second field may contain spaces. Field 3 follows its closing bracket (proc(5)).
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
};
