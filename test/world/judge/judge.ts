import type { TruthChain } from "../chain/truthChain.ts";
import { AnnouncedHeads } from "./announcedHeads.ts";
import type { JudgedAnswer } from "./outcome.ts";
import { Staleness } from "./staleness.ts";
import { findVerdict, type Verdict } from "./verdict.ts";
import type { WrongClass } from "./wrongClass.ts";

/** Judges the answers of one proxy, and counts the wrong ones. It remembers the heads that each replica has shown. */
export class Judge {
  /** Answers with a result. */
  answers = 0;
  readonly wrong = new Map<WrongClass, number>();
  readonly staleness = new Staleness();
  readonly #announced = new Map<TruthChain, AnnouncedHeads>();

  /** Compares an answer with the record. `replica` is the one that answered, or the connection to it. */
  judge(chain: TruthChain, answer: JudgedAnswer, replica: string): Verdict {
    const announced = this.#announced.get(chain) ?? new AnnouncedHeads();
    this.#announced.set(chain, announced);
    const verdict = findVerdict(chain, answer, announced.before(replica, answer.startMs));
    if (verdict.kind === "error") {
      return verdict;
    }
    this.answers++;
    if (verdict.kind === "true") {
      announced.add(replica, chain, answer);
      this.staleness.add(verdict.lagMs);
    } else {
      this.wrong.set(verdict.class, (this.wrong.get(verdict.class) ?? 0) + 1);
    }
    return verdict;
  }
}
