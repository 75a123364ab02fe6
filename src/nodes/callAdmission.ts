/** The periods of a window. */
const PERIODS = 8;
/** A wait is predicted from the answers of this multiple of the longest wait. */
const WINDOW_FACTOR = 2;

export interface CallAdmissionOptions {
  /** HTTP requests that the node gets at a time. */
  readonly places: number;
  /** Whether a further call waits for a place. */
  readonly isFull: () => boolean;
  /** HTTP requests in flight. */
  readonly inFlight: () => number;
  /** A call that would wait longer is refused. */
  readonly maxWaitMs: number;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

interface Period {
  readonly startMs: number;
  answered: number;
}

/**
 * Predicts whether a call of a client would wait too long for one node: its waiting calls divided by its rate of answers.
 * The rate is that of the time in which the node was full. A node with a free place refuses nothing.
 * Each client may have its share of the calls that the node answers in the longest wait.
 */
export class CallAdmission {
  readonly #options: CallAdmissionOptions;
  readonly #byClient = new Map<string, number>();
  #calls = 0;
  /** Calls that wait for the budget of the node. */
  #delayed = 0;
  /** The periods since the node is full, the newest last. Empty while it is not. */
  #periods: Period[] = [];

  constructor(options: CallAdmissionOptions) {
    this.#options = options;
  }

  /** Whether a call of this client, with this time to its deadline, should not wait. */
  isRefused(clientId: string, remainingMs: number): boolean {
    if (this.#delayed === 0 && !this.#options.isFull()) {
      return false;
    }
    this.#observe();
    const limitMs = Math.min(this.#options.maxWaitMs, remainingMs);
    const waiting = this.#waiting;
    const answerable = this.#answersPerMs * limitMs;
    if (waiting <= answerable) {
      return false;
    }
    const share = (this.#calls - waiting + answerable) / Math.max(1, this.#byClient.size);
    return (this.#byClient.get(clientId) ?? 0) >= share;
  }

  /** Counts a call until `end`. */
  begin(clientId: string): void {
    this.#calls++;
    this.#byClient.set(clientId, (this.#byClient.get(clientId) ?? 0) + 1);
    this.#observe();
  }

  /** `isAnswered`: the node executed the call. A refusal, a broken connection and a deadline are no answers. */
  end(clientId: string, isAnswered: boolean): void {
    this.#calls--;
    const mine = (this.#byClient.get(clientId) ?? 0) - 1;
    if (mine > 0) {
      this.#byClient.set(clientId, mine);
    } else {
      this.#byClient.delete(clientId);
    }
    this.#observe();
    const period = this.#periods.at(-1);
    if (isAnswered && period !== undefined) {
      period.answered++;
    }
  }

  /** Counts a call that waits for the budget of the node, until `endDelay`. */
  beginDelay(clientId: string): void {
    this.#delayed++;
    this.begin(clientId);
  }

  endDelay(clientId: string): void {
    this.#delayed--;
    this.end(clientId, false);
  }

  /** Calls that wait here, or in the node behind others of their batches: each place serves one call. */
  get #waiting(): number {
    return this.#delayed + Math.max(0, this.#sent - this.#options.places);
  }

  get #sent(): number {
    return this.#calls - this.#delayed;
  }

  /** An upper bound: the calls in flight may be answered at any moment. Thus a wait is at most the time since the node is full. */
  get #answersPerMs(): number {
    const [first] = this.#periods;
    if (first === undefined) {
      return Number.POSITIVE_INFINITY;
    }
    const answered = this.#periods.reduce((sum, period) => sum + period.answered, 0);
    const calls = Math.max(answered + Math.min(this.#sent, this.#options.places), this.#calls);
    return calls / (this.#options.now() - first.startMs);
  }

  /** Starts a window when the node is full, and ends it when less than half of its places are taken. */
  #observe(): void {
    const { isFull, inFlight, places, maxWaitMs, now } = this.#options;
    const newest = this.#periods.at(-1);
    if (newest === undefined) {
      if (this.#delayed > 0 || isFull()) {
        this.#periods = [{ startMs: now(), answered: 0 }];
      }
      return;
    }
    if (this.#delayed === 0 && !isFull() && inFlight() < places / 2) {
      this.#periods = [];
      return;
    }
    const nowMs = now();
    const windowMs = maxWaitMs * WINDOW_FACTOR;
    if (nowMs - newest.startMs >= windowMs / PERIODS) {
      this.#periods.push({ startMs: nowMs, answered: 0 });
      this.#periods = this.#periods.filter(({ startMs }, index, all) => {
        const endMs = all[index + 1]?.startMs ?? nowMs;
        return endMs > nowMs - windowMs || startMs === nowMs;
      });
    }
  }
}
