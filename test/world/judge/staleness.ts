const LIMITS_MS = [0, 50, 100, 250, 500, 1_000, 2_000, 5_000] as const;
const SHARES = [0.5, 0.99, 0.999] as const;

/** The distribution of the times for which the view of an answer was over when its request began. */
export class Staleness {
  readonly #counts = new Map<number, number>();
  #answers = 0;
  #longestMs = 0;

  add(ms: number): void {
    this.#answers++;
    this.#longestMs = Math.max(this.#longestMs, ms);
    const limit = LIMITS_MS.find((each) => ms <= each) ?? Number.POSITIVE_INFINITY;
    this.#counts.set(limit, (this.#counts.get(limit) ?? 0) + 1);
  }

  report(): object {
    const shares = SHARES.map((share) => [`p${share * 100}AtMostMs`, this.#limitOf(share)]);
    const counts = [...LIMITS_MS, Number.POSITIVE_INFINITY].map((limit) => [
      limit === Number.POSITIVE_INFINITY ? "more" : `atMost${limit}Ms`,
      this.#counts.get(limit) ?? 0,
    ]);
    return { ...Object.fromEntries(counts), ...Object.fromEntries(shares), longestMs: Math.round(this.#longestMs) };
  }

  #limitOf(share: number): number {
    let seen = 0;
    for (const limit of LIMITS_MS) {
      seen += this.#counts.get(limit) ?? 0;
      if (seen >= share * this.#answers) {
        return limit;
      }
    }
    return Math.round(this.#longestMs);
  }
}
