import { readFileSync } from "node:fs";

/** USER_HZ, which Linux fixes at 100 towards programs. */
const TICKS_PER_SECOND = 100;

/** CPU time of a process with all its threads so far, user and system. Resolution: 10 ms. */
export const cpuSeconds = (pid: number): number => {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  // The name in the second field may hold spaces: what follows its bracket is fields 3 and up (proc(5)).
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
};
