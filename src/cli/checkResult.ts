/** The result of one check. The text never contains a URL. */
export interface CheckResult {
  readonly level: "ok" | "warn" | "fault";
  /** The checked part, for example `op/node1` or `redis`. */
  readonly subject: string;
  readonly text: string;
}

export const CHECK_TIMEOUT_MS = 5_000;

export const formatCheckResult = ({ level, subject, text }: CheckResult): string =>
  `${level.padEnd(5)} ${subject}: ${text}`;

/** Appends the meaning of a fault, if it is known. */
export const withHint = (text: string, hint: string | undefined): string =>
  hint === undefined ? text : `${text} (${hint})`;

/** Runs a check. An error becomes the fault that `reasonOf` returns for it. */
export const checked = async (
  subject: string,
  run: () => Promise<Omit<CheckResult, "subject">>,
  reasonOf: (error: unknown) => string,
): Promise<CheckResult> => {
  try {
    return { subject, ...(await run()) };
  } catch (error) {
    return { subject, level: "fault", text: reasonOf(error) };
  }
};
