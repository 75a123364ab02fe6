const METRIC = /\bforebay_process(?:es|_responses_total)\b/;

/** Whether an expression has data only with several processes. A test of test/service/processes.test.ts reads these metrics. */
export const isOfSeveralProcesses = (expr: string): boolean => METRIC.test(expr);
