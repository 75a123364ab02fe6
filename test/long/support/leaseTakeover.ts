import { setTimeout as sleep } from "node:timers/promises";
import type { Lie } from "../../support/fakes/lyingNode.ts";
import type { RedisServer } from "../../support/servers/redis.ts";
import { SOURCE_METHODS } from "./sharedReplicas.ts";

const TOKEN = "lease:of-another";
const LEASE_MS = 3_000;
const CHECK_MS = 600;
/** A Redis that is stopped does not hold up the node. */
const MAX_WAIT_MS = 100;
const HASH = /0x[0-9a-f]{64}/;

/**
 * Lets leases end while their holders wait for a node: another replica has the lease when the write set arrives, and ends itself.
 * The holder must not write then, and nobody waits for the other one for long.
 */
export class LeaseTakeover {
  /** Keys that a holder wrote after its lease had ended. */
  readonly violations: string[] = [];
  taken = 0;
  readonly #redis: RedisServer;
  readonly #random: () => number;
  readonly #share: number;
  #faults = 0;

  constructor(redis: RedisServer, random: () => number, share: number) {
    this.#redis = redis;
    this.#random = random;
    this.#share = share;
  }

  /** Called when a fault of Redis begins or ends: it may have lost the lease. */
  onFault(): void {
    this.#faults++;
  }

  /** Takes leases while the response of a node is on its way. */
  get lie(): Lie {
    return {
      ...{ name: "takeover", methods: SOURCE_METHODS },
      result: async (result, { params }) => {
        const hash = HASH.exec(JSON.stringify(params))?.[0];
        if (hash !== undefined && this.#random() < this.#share) {
          await Promise.race([this.#take(hash).catch(() => undefined), sleep(MAX_WAIT_MS)]);
        }
        return result;
      },
    };
  }

  async #take(hash: string): Promise<void> {
    const { admin } = this.#redis;
    const faults = this.#faults;
    for (const key of await admin.keys(`*:writes*${hash}*`)) {
      if (!String(await admin.get(key)).startsWith("lease:")) {
        continue;
      }
      if ((await admin.set(key, TOKEN, "PX", LEASE_MS, "XX")) === "OK") {
        this.taken++;
        void this.#check(key, faults);
      }
    }
  }

  async #check(key: string, faults: number): Promise<void> {
    const takenMs = performance.now();
    await sleep(CHECK_MS);
    const value = await this.#redis.admin.get(key).catch(() => null);
    // On a machine that stood still, the lease may have ended, and another holder may have written.
    const isHeld = performance.now() - takenMs < LEASE_MS / 2;
    if (isHeld && faults === this.#faults && value !== TOKEN && value !== null) {
      this.violations.push(key);
    }
  }
}
