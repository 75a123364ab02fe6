/**
 * Divides an amount between clients: places, or bytes. A client may hold as much as is free: alone half of the amount,
 * beside one other client a third. So one client never takes everything, and an idle client has no reserved part.
 */
export class FairShares {
  readonly #max: number;
  readonly #held = new Map<string, number>();
  #used = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get used(): number {
    return this.#used;
  }

  /** The amount that this client holds. */
  heldBy(clientId: string): number {
    return this.#held.get(clientId) ?? 0;
  }

  /** Whether the amount is free, and within the client's share. Undefined for work that no client requested. */
  fits(clientId: string | undefined, amount: number): boolean {
    const free = this.#max - this.#used;
    return amount <= free && (clientId === undefined || this.heldBy(clientId) + amount <= free);
  }

  /** Whether the amount, taken in small parts, would fit to its end. Each part counts against the client, and is not free any more. */
  fitsInParts(clientId: string, amount: number): boolean {
    return this.heldBy(clientId) + 2 * amount <= this.#max - this.#used;
  }

  /** Takes the amount, also above the limits. Call `fits` first for work that can be refused. */
  take(clientId: string | undefined, amount: number): void {
    this.#used += amount;
    if (clientId !== undefined) {
      const held = this.heldBy(clientId) + amount;
      if (held === 0) {
        this.#held.delete(clientId);
      } else {
        this.#held.set(clientId, held);
      }
    }
  }

  release(clientId: string | undefined, amount: number): void {
    this.take(clientId, -amount);
  }
}
