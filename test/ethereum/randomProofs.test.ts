import { test } from "node:test";
import { createChoices } from "../fuzz/engine/random.ts";
import { createTarget } from "../fuzz/targets/proof.ts";

const CASES = 5;

test("random proofs: right ones have the value of the trie, changed ones are refused or have it too", async (t) => {
  const target = await createTarget({ after: (end) => t.after(end as () => void) });
  for (let index = 0; index < CASES; index++) {
    await target.run(createChoices(1, index), index);
  }
});
