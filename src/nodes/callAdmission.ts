/** The time in which the waiting calls of clients should be answered, at the rate of the last second. */
const MAX_WAIT_MS = 1_000;
/** A burst is accepted whole: calls are refused only after the limit was exceeded for this time. */
const BURST_MS = 1_000;
const BUCKET_MS = 250;
const BUCKETS = 1_000 / BUCKET_MS;

export interface CallAdmissionOptions {
  /** As many calls are never refused. */
  readonly minCalls: number;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/**
 * Decides whether one node gets a further call of a client. A node with more calls than it answers in MAX_WAIT_MS answers all
 * of them too late, so that its clients get nothing. Each client may have its share of the calls.
 */
export class CallAdmission {
  readonly #options: CallAdmissionOptions;
  readonly #byClient = new Map<string, number>();
  #calls = 0;
  /** Answered calls by period, the newest last. */
  #answered: number[] = [0];
  #bucketMs: number;
  #exceededSinceMs: number | undefined;

  constructor(options: CallAdmissionOptions) {
    this.#options = options;
    this.#bucketMs = options.now();
  }

  /** Counts a call until `end`. Returns false, and counts nothing, if the call must be refused. */
  begin(clientId: string): boolean {
    const mine = this.#byClient.get(clientId) ?? 0;
    if (this.#isOverloaded() && mine >= this.#limit / Math.max(1, this.#byClient.size)) {
      return false;
    }
    this.#calls++;
    this.#byClient.set(clientId, mine + 1);
    return true;
  }

  /** `isAnswered`: the node decided the outcome, and not the client or its deadline. */
  end(clientId: string, isAnswered: boolean): void {
    this.#calls--;
    if (isAnswered) {
      this.#roll();
      this.#answered.push((this.#answered.pop() ?? 0) + 1);
    }
    const mine = (this.#byClient.get(clientId) ?? 0) - 1;
    if (mine > 0) {
      this.#byClient.set(clientId, mine);
    } else {
      this.#byClient.delete(clientId);
    }
  }

  get #limit(): number {
    const answered = this.#answered.reduce((sum, count) => sum + count, 0);
    return Math.max(this.#options.minCalls, (answered * MAX_WAIT_MS) / (BUCKETS * BUCKET_MS));
  }

  #isOverloaded(): boolean {
    if (this.#calls < this.#options.minCalls) {
      this.#exceededSinceMs = undefined;
      return false;
    }
    this.#roll();
    const nowMs = this.#options.now();
    if (this.#calls < this.#limit) {
      // A load that hovers at the limit is no new burst.
      if (this.#calls < this.#limit / 2) {
        this.#exceededSinceMs = undefined;
      }
      return false;
    }
    this.#exceededSinceMs ??= nowMs;
    return nowMs - this.#exceededSinceMs >= BURST_MS;
  }

  #roll(): void {
    const passed = Math.floor((this.#options.now() - this.#bucketMs) / BUCKET_MS);
    if (passed > 0) {
      this.#answered = [...this.#answered, ...Array<number>(Math.min(passed, BUCKETS)).fill(0)].slice(-BUCKETS);
      this.#bucketMs += passed * BUCKET_MS;
    }
  }
}
