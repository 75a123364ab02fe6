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
