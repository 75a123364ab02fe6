/** Counts the calls of one client. */
export interface CallUsage {
  countCall(units: number, isError: boolean, isSaved: boolean): void;
}
