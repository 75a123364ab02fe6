/** Returns the CPU time of this thread, in milliseconds. Other load on the machine changes it less than the time of day. */
export const threadCpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};
