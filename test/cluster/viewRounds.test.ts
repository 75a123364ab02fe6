import assert from "node:assert/strict";
import { test } from "node:test";
import { type ViewMember, ViewRounds } from "../../src/cluster/viewRounds.ts";

const decoder = new TextDecoder();

interface Recorder extends ViewMember {
  readonly events: string[];
}

/** Rounds of texts. A snapshot is all texts so far. */
const createRounds = () => {
  const lagging: ViewMember[] = [];
  let published = "";
  const rounds = new ViewRounds<string>({
    encode: (changes) => {
      published += changes.join("");
      return Buffer.from(changes.join(""));
    },
    snapshot: () => (published === "" ? undefined : Buffer.from(`all:${published}`)),
    onLagging: (member) => lagging.push(member),
    onRound: () => undefined,
  });
  /** A member acknowledges each round at once, unless it is stopped. */
  const createMember = () => {
    const events: string[] = [];
    const late: number[] = [];
    const member = {
      events,
      isStopped: false,
      prepare: (round: number, update: Uint8Array) => {
        events.push(`prepare ${decoder.decode(update)}`);
        if (member.isStopped) {
          late.push(round);
        } else {
          rounds.acknowledge(member, round);
        }
      },
      commit: () => {
        events.push("commit");
      },
      resume: () => {
        member.isStopped = false;
        for (const round of late.splice(0)) {
          rounds.acknowledge(member, round);
        }
      },
    };
    return member;
  };
  return { rounds, lagging, createMember };
};

const join = async (rounds: ViewRounds<string>, ...members: readonly Recorder[]): Promise<void> => {
  await Promise.all(members.map((member) => rounds.join(member)));
};

test("no member gets the commit of a view before all have stopped answering from the view before", async () => {
  const { rounds, createMember } = createRounds();
  const [quick, slow] = [createMember(), createMember()];
  await join(rounds, quick, slow);
  slow.isStopped = true;
  rounds.publish("a");
  await Promise.resolve();
  await Promise.resolve();
  assert.deepEqual([quick.events, slow.events], [["prepare a"], ["prepare a"]]);
  slow.resume();
  await rounds.settled();
  assert.deepEqual(
    [quick.events, slow.events],
    [
      ["prepare a", "commit"],
      ["prepare a", "commit"],
    ],
  );
});

test("changes during a round are one update of the next round", async () => {
  const { rounds, createMember } = createRounds();
  const member = createMember();
  await join(rounds, member);
  member.isStopped = true;
  rounds.publish("a");
  await Promise.resolve();
  await Promise.resolve();
  rounds.publish("b");
  rounds.publish("c");
  member.resume();
  await rounds.settled();
  assert.deepEqual(member.events, ["prepare a", "commit", "prepare bc", "commit"]);
});

test("a member that does not acknowledge in time does not hold the others, and gets the whole state later", async () => {
  const { rounds, lagging, createMember } = createRounds();
  const [quick, stopped] = [createMember(), createMember()];
  await join(rounds, quick, stopped);
  stopped.isStopped = true;
  rounds.publish("a");
  await rounds.settled();
  rounds.publish("b");
  await rounds.settled();
  assert.deepEqual(lagging, [stopped]);
  assert.deepEqual(quick.events, ["prepare a", "commit", "prepare b", "commit"]);
  assert.deepEqual(
    stopped.events,
    ["prepare a"],
    "it gets nothing while it is stopped, so that its pipe does not fill",
  );
  stopped.resume();
  await rounds.settled();
  assert.deepEqual(stopped.events, ["prepare a", "prepare all:ab", "commit"]);
  assert.equal(quick.events.length, 4, "the view of the others is the same");
  rounds.publish("c");
  await rounds.settled();
  assert.deepEqual(stopped.events.slice(-2), ["prepare c", "commit"]);
});

test("a member that ends during a round is not waited for", async () => {
  const { rounds, lagging, createMember } = createRounds();
  const [quick, ending] = [createMember(), createMember()];
  await join(rounds, quick, ending);
  ending.isStopped = true;
  rounds.publish("a");
  await Promise.resolve();
  await Promise.resolve();
  rounds.leave(ending);
  await rounds.settled();
  assert.deepEqual([quick.events, lagging], [["prepare a", "commit"], []]);
});

test("a new member gets the whole state, and its join ends after the commit", async () => {
  const { rounds, createMember } = createRounds();
  rounds.publish("a");
  await rounds.settled();
  const member = createMember();
  await join(rounds, member);
  assert.deepEqual(member.events, ["prepare all:a", "commit"]);
});
