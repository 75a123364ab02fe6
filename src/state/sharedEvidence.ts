import { z } from "zod";
import type { SharedValues } from "../core/sharedValues.ts";
import type { GiverEvidence } from "./giverEvidence.ts";
import { probationProgress } from "./giverEvidence.ts";
import type { SourceTrust, SuspensionCause } from "./sourceTrust.ts";

export interface SharedEvidenceOptions {
  readonly values: SharedValues;
  readonly trust: Pick<SourceTrust, "evidenceOf" | "onSuspended">;
  readonly nodes: readonly EvidenceNode[];
  /** Called if another replica has found a node wrong, after its traces were suspended here. */
  onSuspended(node: string, cause: SuspensionCause): void;
  readonly nowMs?: () => number;
}

/** What names a node on all replicas. Its URL may have a key. */
interface EvidenceNode {
  readonly name: string;
  readonly origin: string;
}

/** Increased when the form or the meaning of the records changes. Other versions have other keys. */
const FORMAT = 1;
/** The time in which a suspension reaches the other replicas. */
const POLL_MS = 1_000;
const TRUSTED_SECONDS = 86_400;
/** A suspension is known longer than the trust that was earned before it. */
const SUSPENDED_SECONDS = 2 * TRUSTED_SECONDS;
const RENEW_MS = 3_600_000;
/** An older suspension does not suspend the node itself, which rests for 30 s. */
const RECENT_MS = 10_000;

/** Times are in milliseconds since 1970. */
const suspension = z.object({ atMs: z.number(), untilMs: z.number(), cause: z.enum(["value", "traces"]) });
const trusted = z.object({
  sinceMs: z.number(),
  writtenAtMs: z.number(),
  progress: probationProgress,
});

type Suspension = z.infer<typeof suspension>;
type Trusted = z.infer<typeof trusted>;

const parse = <T>(schema: z.ZodType<T>, bytes: Uint8Array | undefined): T | undefined => {
  try {
    return bytes && schema.parse(JSON.parse(Buffer.from(bytes).toString()));
  } catch {
    return undefined;
  }
};

/**
 * Shares the evidence on the traces of nodes among replicas. A node that one replica found wrong is suspended on all that have it.
 * Its probation is passed on all once it is on one. Without Redis, each replica has its own evidence.
 */
export class SharedEvidence {
  readonly #options: SharedEvidenceOptions;
  readonly #nowMs: () => number;
  readonly #timer: NodeJS.Timeout;
  readonly #unsubscribe: () => void;
  /** The suspensions that apply here, by the name of the node. */
  readonly #suspensions = new Map<string, Suspension>();
  /** The time since which a node is trusted here, by its name. */
  readonly #trustedSinceMs = new Map<string, number>();

  constructor(options: SharedEvidenceOptions) {
    const { trust, nowMs = Date.now } = options;
    this.#options = options;
    this.#nowMs = nowMs;
    this.#unsubscribe = trust.onSuspended((node, cause) => this.#publish(node, cause));
    this.#timer = setInterval(() => void this.exchange(), POLL_MS).unref();
  }

  /** Exchanges the evidence on all nodes with Redis. Never rejects. */
  async exchange(): Promise<void> {
    await Promise.all(this.#options.nodes.map((node) => this.#exchange(node)));
  }

  close(): void {
    clearInterval(this.#timer);
    this.#unsubscribe();
  }

  async #exchange(node: EvidenceNode): Promise<void> {
    const { values, trust } = this.#options;
    const [suspended, passed] = await Promise.all([values.get(suspendedKey(node)), values.get(trustedKey(node))]);
    const shared = parse(suspension, suspended);
    this.#takeSuspension(node, shared);
    const evidence = trust.evidenceOf(node.name);
    if (evidence.isSuspended) {
      this.#trustedSinceMs.delete(node.name);
      return;
    }
    // Trust from before a suspension has ended with it.
    const afterMs = Math.max(shared?.untilMs ?? 0, this.#suspensions.get(node.name)?.untilMs ?? 0);
    const record = parse(trusted, passed);
    this.#exchangeTrust(node, evidence, record !== undefined && record.sinceMs > afterMs ? record : undefined);
  }

  /** Applies a suspension of another replica. Stores that of this one again if Redis has lost it. */
  #takeSuspension(node: EvidenceNode, shared: Suspension | undefined): void {
    const { trust, onSuspended } = this.#options;
    const own = this.#suspensions.get(node.name);
    const nowMs = this.#nowMs();
    if (shared !== undefined && shared.untilMs > Math.max(nowMs, own?.untilMs ?? 0)) {
      this.#suspensions.set(node.name, shared);
      trust.evidenceOf(node.name).suspend(shared.untilMs - nowMs);
      onSuspended(node.name, nowMs - shared.atMs < RECENT_MS ? shared.cause : "traces");
    } else if (own !== undefined && own.untilMs > Math.max(nowMs, shared?.untilMs ?? 0)) {
      this.#write(suspendedKey(node), own, SUSPENDED_SECONDS);
    }
  }

  #exchangeTrust(node: EvidenceNode, evidence: GiverEvidence, record: Trusted | undefined): void {
    const nowMs = this.#nowMs();
    if (evidence.isTrusted) {
      const sinceMs = this.#trustedSinceMs.get(node.name) ?? nowMs;
      this.#trustedSinceMs.set(node.name, sinceMs);
      if (record === undefined || nowMs - record.writtenAtMs > RENEW_MS) {
        this.#write(trustedKey(node), { sinceMs, writtenAtMs: nowMs, progress: evidence.progress }, TRUSTED_SECONDS);
      }
    } else if (record !== undefined && isFurther(record.progress, evidence.progress)) {
      evidence.resume(record.progress);
      this.#trustedSinceMs.set(node.name, record.sinceMs);
    }
  }

  #publish(name: string, cause: SuspensionCause): void {
    const node = this.#options.nodes.find((each) => each.name === name);
    if (node !== undefined) {
      const nowMs = this.#nowMs();
      const untilMs = nowMs + this.#options.trust.evidenceOf(name).suspendedForMs;
      const published = { atMs: nowMs, untilMs, cause };
      this.#suspensions.set(name, published);
      this.#write(suspendedKey(node), published, SUSPENDED_SECONDS);
    }
  }

  #write(key: string, record: Suspension | Trusted, seconds: number): void {
    this.#options.values.set(key, Buffer.from(JSON.stringify(record)), seconds);
  }
}

type Progress = Trusted["progress"];

const isFurther = (one: Progress, other: Progress): boolean => one.blocks > other.blocks || one.values > other.values;

const suspendedKey = ({ name, origin }: EvidenceNode): string => `evidence${FORMAT}:suspended:${origin}:${name}`;
const trustedKey = ({ name, origin }: EvidenceNode): string => `evidence${FORMAT}:trusted:${origin}:${name}`;
