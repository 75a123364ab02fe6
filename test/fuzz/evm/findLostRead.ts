import type { Engine } from "../../../src/evm/engine.ts";
import { recoverAuthority } from "../../../src/evm/senders/recoverAddress.ts";
import { readerOf } from "../../support/builders/stateRoot.ts";
import { runTransaction } from "./observation.ts";
import { type FuzzCase, SLOT_HASHES } from "./randomWorld.ts";
import { UnreadChanges } from "./unreadChanges.ts";

/**
 * Executes each transaction of a case alone, twice: the second time after changes of values that it did not read. Returns the
 * first difference of the results. Reads must not be lost, whatever another engine says.
 */
export const findLostRead = async (
  engine: Engine,
  { rules, state: before, block, transactions }: FuzzCase,
  random: () => number,
): Promise<string | undefined> => {
  for (const [at, message] of transactions.entries()) {
    const state = engine.createState(readerOf(before, block.blockHash));
    const { outcome, reads } = await runTransaction(engine, { state, block }, message);
    if (reads === undefined) {
      continue;
    }
    const signers = message.authorizationList.map((each) => recoverAuthority(each, rules.chainId));
    const authorities = new Set(signers.filter((signer) => signer !== undefined));
    const changes = new UnreadChanges(reads, rules.fork, authorities, random);
    const changedBlock = changes.block(block);
    const changedState = engine.createState(readerOf(changes.state(before, SLOT_HASHES), changedBlock.blockHash));
    const second = await runTransaction(engine, { state: changedState, block: changedBlock }, message);
    if (second.outcome.join("\n") !== outcome.join("\n")) {
      return [
        `transaction ${at} alone depends on a value that it did not read`,
        ...outcome.map((line) => `  first: ${line}`),
        ...second.outcome.map((line) => `  changed: ${line}`),
      ].join("\n");
    }
  }
  return undefined;
};
