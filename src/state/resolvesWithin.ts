/** Whether `settled` resolves within a time. */
export const resolvesWithin = (settled: Promise<void>, forMs: number): Promise<boolean> => {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), forMs);
  void settled.then(() => {
    clearTimeout(timer);
    resolve(true);
  });
  return promise;
};
