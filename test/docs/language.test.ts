import assert from "node:assert/strict";
import { test } from "node:test";
import { countWords, proseOf, sentencesOf } from "./prose.ts";
import { documentPaths, readRepositoryFile } from "./repositoryFiles.ts";

const MAX_WORDS = 25;

const SENTENCES = documentPaths().flatMap((path) =>
  proseOf(readRepositoryFile(path), { withGenerated: true }).flatMap((block) =>
    sentencesOf(block).map((sentence) => ({ path, sentence })),
  ),
);

test("no sentence of a document has more than 25 words", () => {
  const long = SENTENCES.filter(({ sentence }) => countWords(sentence) > MAX_WORDS);
  assert.deepEqual(
    long.map(({ path, sentence }) => `${path}: ${countWords(sentence)} words: ${sentence}`),
    [],
  );
});

test("prose leaves out code, quotations and generated parts", () => {
  const text = "# Title\n\nOne `a b` two.\nThree.\n\n```\ncode\n```\n> quoted\n\n- item\n\n| a | `b|c` |\n|---|---|\n";
  const generated = "<!-- generated: x -->\n| hidden |\n<!-- /generated -->\n";
  assert.deepEqual(proseOf(text + generated), ["Title", "One CODE two. Three.", "item", "a", "CODE"]);
  assert.deepEqual(proseOf(generated, { withGenerated: true }), ["hidden"]);
  assert.deepEqual(sentencesOf("One CODE two. Three: 4.5 e.g. five."), ["One CODE two.", "Three: 4.5 e.g. five."]);
});
