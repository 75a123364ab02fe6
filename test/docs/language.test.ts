import assert from "node:assert/strict";
import { test } from "node:test";
import { LOCAL_VERBS, LOCAL_WORDS, OLD_PHRASES, type Phrase } from "./dialect.ts";
import { countWords, proseOf, sentencesOf } from "./prose.ts";
import { documentPaths, readRepositoryFile } from "./repositoryFiles.ts";

const MAX_WORDS = 25;

const SENTENCES = documentPaths().flatMap((path) =>
  proseOf(readRepositoryFile(path), { withGenerated: true }).flatMap((block) =>
    sentencesOf(block).map((sentence) => ({ path, sentence })),
  ),
);

const phrasesOf = (sentence: string, phrases: readonly Phrase[]): readonly string[] =>
  phrases.filter(({ pattern }) => pattern.test(sentence)).map(({ pattern, instead }) => `${pattern}: ${instead}`);

test("no sentence of a document has more than 25 words", () => {
  const long = SENTENCES.filter(({ sentence }) => countWords(sentence) > MAX_WORDS);
  assert.deepEqual(
    long.map(({ path, sentence }) => `${path}: ${countWords(sentence)} words: ${sentence}`),
    [],
  );
});

test("documents are free of the project's old phrases", () => {
  const phrases = [...OLD_PHRASES, ...LOCAL_WORDS, ...LOCAL_VERBS];
  const found = SENTENCES.flatMap(({ path, sentence }) =>
    phrasesOf(sentence, phrases).map((phrase) => `${path}: ${sentence} (${phrase})`),
  );
  assert.deepEqual(found, []);
});

test("each sentence of the old style is found, and its replacement is not", () => {
  const examples = [
    ["Put by number, or naming no block: an answer of the node's own branch.", "Requests by number are rejected."],
    ["Whether the answer is right by its own words.", "Whether the response's block hash matches the request."],
    ["So long, a node is not believed.", "Ignore a node's response for as long as EXPECTED_MS."],
    ["He has as many addresses as he likes.", "An IPv6 /64 counts as one client."],
    ["Whatever it lacked: what it lacked has come.", "Fetches missing state, executes again."],
    ["No node has told its head yet.", "No upstream node has reported a head yet."],
    ["It goes to the node as it came.", "The request is forwarded unchanged."],
    ["What is put by number is asked again.", "What is a view?"],
    ["Blocks of one query at most", "Limited to 5 blocks, and at most 3 calls per block"],
    ["What the node says where it has no block.", "What it saves"],
    ["So many calls are sent meanwhile.", "So many that none is left, in the meantime."],
  ] as const;
  for (const [before, after] of examples) {
    assert.notDeepEqual(phrasesOf(before, [...OLD_PHRASES, ...LOCAL_WORDS]), [], before);
    assert.deepEqual(phrasesOf(after, [...OLD_PHRASES, ...LOCAL_WORDS, ...LOCAL_VERBS]), [], after);
  }
});

test("prose leaves out code, quotations and generated parts", () => {
  const text = "# Title\n\nOne `a b` two.\nThree.\n\n```\ncode\n```\n> quoted\n\n- item\n\n| a | `b|c` |\n|---|---|\n";
  const generated = "<!-- generated: x -->\n| hidden |\n<!-- /generated -->\n";
  assert.deepEqual(proseOf(text + generated), ["Title", "One CODE two. Three.", "item", "a", "CODE"]);
  assert.deepEqual(proseOf(generated, { withGenerated: true }), ["hidden"]);
  assert.deepEqual(sentencesOf("One CODE two. Three: 4.5 e.g. five."), ["One CODE two.", "Three: 4.5 e.g. five."]);
});
