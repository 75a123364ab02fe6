import { readFileSync } from "node:fs";

/** USER_HZ, which is always 100 in the interface of Linux. */
const TICKS_PER_SECOND = 100;

/** Reads the CPU time of a process with all its threads, user and system. Resolution: 10 ms. */
export const cpuSeconds = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  // The name in the second field may contain spaces. Field 3 follows its closing bracket (proc(5)).
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
};
