/**
 * Divides an amount between clients: places, or bytes. A client may hold as much as is free: alone half of the amount,
 * beside one other client a third. So one client never takes everything, and an idle client has no reserved part.
 * The clients of one IPv6 /48 may together hold no more than one client.
 */
export class FairShares {
  readonly #max: number;
  /** By network. */
  readonly #held = new Map<string, number>();
  #used = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get used(): number {
    return this.#used;
  }

  /** Whether the amount is free, and the client would hold no more than stays free. Undefined for work that no client requested. */
  fits(clientId: string | undefined, amount: number): boolean {
    const left = this.#max - this.#used - amount;
    return clientId === undefined ? left >= 0 : this.#heldBy(clientId) + amount <= left;
  }

  /** Takes the amount, also above the limits. Call `fits` first for work that can be refused. */
  take(clientId: string | undefined, amount: number): void {
    this.#used += amount;
    if (clientId !== undefined) {
      const network = networkOf(clientId);
      const held = (this.#held.get(network) ?? 0) + amount;
      if (held === 0) {
        this.#held.delete(network);
      } else {
        this.#held.set(network, held);
      }
    }
  }

  release(clientId: string | undefined, amount: number): void {
    this.take(clientId, -amount);
  }

  #heldBy(clientId: string): number {
    return this.#held.get(networkOf(clientId)) ?? 0;
  }
}

/** The end of a client that is an IPv6 network. */
const SUFFIX = "::/64";

/**
 * Returns the network that is counted together with others of one owner: of an IPv6 client its /48, which a site usually has
 * (RFC 6177). Any other client is its own network.
 */
export const networkOf = (clientId: string): string =>
  clientId.endsWith(SUFFIX)
    ? `${clientId.slice(0, clientId.lastIndexOf(":", clientId.length - SUFFIX.length - 1))}::/48`
    : clientId;
