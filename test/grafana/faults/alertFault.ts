import type { Lifespan } from "../../support/servers/redis.ts";

/** A process with a fault. */
export interface FaultyProcess {
  readonly opsUrl: string;
  /** Begins the fault, once the process was scraped. Absent if it exists from the start. */
  begin?(): unknown;
  /** Called again and again, before and after the fault begins. */
  call?(): Promise<unknown>;
}

export interface FaultTimes {
  /** The time to which the rules shorten "yesterday". */
  readonly maxOffsetSeconds: number;
}

/** A real fault, and the alerts that fire while it lasts. */
export interface AlertFault {
  readonly alerts: readonly string[];
  /** Starts a process. It ends with the test. */
  start(t: Lifespan, times: FaultTimes): Promise<FaultyProcess>;
}
