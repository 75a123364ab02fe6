import assert from "node:assert/strict";
import { test } from "node:test";
import { commentSentences, readComments } from "./comments.ts";
import { countWords } from "./prose.ts";
import { readRepositoryFile, repositoryFiles } from "./repositoryFiles.ts";

const MAX_WORDS = 25;
const MAX_SUPPRESSIONS = 10;
const SUPPRESSION = /(?:biome-ignore(?:-\w+)?|@ts-(?:expect-error|ignore|nocheck)|node:coverage)\b(.*)/g;

const SOURCES = repositoryFiles().filter((path) => path.endsWith(".ts"));

const SENTENCES = SOURCES.flatMap((path) =>
  readComments(readRepositoryFile(path)).flatMap(({ line, text }) =>
    commentSentences(text).map((sentence) => ({ place: `${path}:${line}`, sentence })),
  ),
);

test("no sentence of a comment has more than 25 words", () => {
  const long = SENTENCES.filter(({ sentence }) => countWords(sentence) > MAX_WORDS);
  assert.deepEqual(
    long.map(({ place, sentence }) => `${place}: ${countWords(sentence)} words: ${sentence}`),
    [],
  );
});

/** Names of tests and of their groups. A value in a template counts as one word. */
const TEST_NAME = /\b(?:test|describe|it)\(\s*(?:"([^"\n]*)"|`([^`\n]*)`)/g;

test("no name of a test has more than 25 words", () => {
  const names = SOURCES.filter((path) => path.startsWith("test/")).flatMap((path) =>
    [...readRepositoryFile(path).matchAll(TEST_NAME)].map(([, plain, template = ""]) => ({
      path,
      name: plain ?? template.replaceAll(/\$\{[^}]*\}/g, "CODE"),
    })),
  );
  assert.ok(names.length >= 500, `${names.length} names`);
  const long = names.filter(({ name }) => countWords(name) > MAX_WORDS);
  assert.deepEqual(
    long.map(({ path, name }) => `${path}: ${name}`),
    [],
  );
});

test("src suppresses at most ten findings, each with a reason", () => {
  const suppressions = SOURCES.filter((path) => path.startsWith("src/")).flatMap((path) =>
    [...readRepositoryFile(path).matchAll(SUPPRESSION)].map(([text, reason = ""]) => ({ text, reason, path })),
  );
  assert.ok(
    suppressions.length <= MAX_SUPPRESSIONS,
    suppressions.map(({ path, text }) => `${path}: ${text}`).join("\n"),
  );
  for (const { path, text, reason } of suppressions) {
    assert.match(reason, /\w+ \w+/, `${path}: ${text}`);
  }
});
