import assert from "node:assert/strict";
import { test } from "node:test";
import { isData } from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import { verifyProof } from "../../src/verification/accountProof.ts";
import { checkHeader } from "../../src/verification/checkHeader.ts";
import { checkProof } from "../../src/verification/checkProof.ts";
import { readJson } from "./vectorFolder.ts";
import { xzText } from "./xzText.ts";

type Fields = Readonly<Record<string, unknown>>;

interface Line {
  readonly block: number;
  readonly method: string;
  readonly params: readonly unknown[];
  readonly result: Fields;
}

interface Expected {
  readonly file: string;
  readonly line: number;
  readonly key: string;
  readonly value: string;
}

interface Recorded {
  readonly lines: readonly Line[];
  readonly stateRoots: ReadonlyMap<number, string>;
}

const FILES = ["amsterdam.jsonl.xz", "osaka.jsonl.xz"];

const readFile = (file: string): Recorded => {
  const lines = xzText(`proofs/${file}`)
    .trim()
    .split("\n")
    .map((line): Line => JSON.parse(line));
  const blocks = lines.filter(({ method }) => method === "eth_getBlockByNumber");
  for (const { block, result } of blocks) {
    assert.equal(checkHeader(result).outcome, "passed", `${file}: header of ${block}`);
  }
  return { lines, stateRoots: new Map(blocks.map(({ block, result }) => [block, String(result.stateRoot)])) };
};

const dataOf = (value: unknown): `0x${string}` => {
  assert.ok(isData(value));
  return value;
};

const requestOf = ({ block, params: [address, keys] }: Line, { stateRoots }: Recorded) => ({
  stateRoot: dataOf(stateRoots.get(block)),
  address: dataOf(address),
  keys: keys as readonly string[],
});

const isProof = ({ method }: Line): boolean => method === "eth_getProof";

/** Changes one hex digit of a text. */
const flipAt = (text: string, at: number): string =>
  text.slice(0, at) + (Number.parseInt(text[at] ?? "0", 16) ^ 1).toString(16) + text.slice(at + 1);

/** Each list of nodes with each byte of each node changed. */
function* changedNodes(nodes: readonly string[]): Generator<readonly string[]> {
  for (const [index, node] of nodes.entries()) {
    for (let at = 2; at < node.length; at += 2) {
      yield nodes.with(index, flipAt(node, at));
    }
  }
}

function* withChangedBytes(response: Fields): Generator<Fields> {
  for (const accountProof of changedNodes(response.accountProof as readonly string[])) {
    yield { ...response, accountProof };
  }
  const slots = response.storageProof as readonly Fields[];
  for (const [index, slot] of slots.entries()) {
    for (const proof of changedNodes(slot.proof as readonly string[])) {
      yield { ...response, storageProof: slots.with(index, { ...slot, proof }) };
    }
  }
}

for (const file of FILES) {
  test(`geth: the proofs of ${file} follow from the headers, and the fields beside them too`, () => {
    const recorded = readFile(file);
    const proofs = recorded.lines.filter(isProof);
    assert.ok(proofs.length > 300);
    for (const line of proofs) {
      const request = requestOf(line, recorded);
      const { account } = verifyProof(request, line.result);
      const expected = account.exists ? ["passed"] : [];
      assert.deepEqual(
        checkProof(line.result, request).map(({ outcome }) => outcome),
        expected,
        `block ${line.block}`,
      );
    }
  });

  test(`geth: no byte of a node in ${file} can be changed`, () => {
    const recorded = readFile(file);
    let changed = 0;
    // Of all proofs it would take a minute.
    for (const line of recorded.lines.filter(isProof).filter((_, index) => index % 16 === 0)) {
      const request = requestOf(line, recorded);
      for (const response of withChangedBytes(line.result)) {
        assert.equal(checkProof(response, request)[0]?.outcome, "failed");
        changed++;
      }
    }
    assert.ok(changed > 10_000, `${changed}`);
  });

  test(`geth: code in ${file} has the proven hash`, () => {
    const recorded = readFile(file);
    let compared = 0;
    for (const { block, params, result } of recorded.lines.filter(({ method }) => method === "eth_getCode")) {
      const line = recorded.lines.find(
        (other) => isProof(other) && other.block === block && other.params[0] === params[0],
      );
      if (line !== undefined) {
        const { account } = verifyProof(requestOf(line, recorded), line.result);
        assert.equal(account.codeHash, keccak256Hex(Buffer.from(String(result).slice(2), "hex")));
        compared++;
      }
    }
    assert.ok(compared > 5, `${compared}`);
  });

  test(`geth: the proofs of ${file} have the values that other methods returned`, () => {
    const recorded = readFile(file);
    let compared = 0;
    for (const { line: number, key, value } of (readJson("proofs/expected.json") as readonly Expected[]).filter(
      (expected) => expected.file === file,
    )) {
      const line = recorded.lines[number - 1];
      const [kind, address, slot] = key.split(" ");
      if (line === undefined || !isProof(line) || line.params[0] !== address) {
        continue;
      }
      compared++;
      const { account, slots } = verifyProof(requestOf(line, recorded), line.result);
      const found = slots.find(({ fields }) => BigInt(String(fields.key)) === BigInt(slot ?? "0x0"));
      const proven = { balance: account.balance, nonce: account.nonce, slot: found?.value }[kind ?? ""];
      if (kind === "code") {
        assert.equal(account.codeHash, keccak256Hex(Buffer.from(value.slice(2), "hex")), key);
      } else {
        assert.equal(proven, BigInt(value), key);
      }
    }
    assert.ok(compared > 20, `${compared}`);
  });
}
