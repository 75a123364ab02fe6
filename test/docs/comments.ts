import { sentencesOf } from "./prose.ts";

/** A comment of a source file: its text without markers, and its first line (from 1). */
export interface Comment {
  readonly line: number;
  readonly text: string;
}

const BLOCK = /^[ \t]*\/\*\*?([\s\S]*?)\*\//gm;
const LINES = /(?:^[ \t]*\/\/.*(?:\n|$))+/gm;
const TRAILING = /^.*[;,{)\]}] +\/\/ (.*)$/gm;

const lineAt = (source: string, index: number): number => source.slice(0, index).split("\n").length;

const unwrap = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.replace(/^\s*(?:\*|\/\/+) ?/, ""))
    .join("\n")
    .trim();

/** Reads all comments of a TypeScript source: first the blocks, then whole lines, then ends of lines. */
export const readComments = (source: string): readonly Comment[] => {
  const commentsOf = (pattern: RegExp, group: number): readonly Comment[] =>
    [...source.matchAll(pattern)].map((match) => ({
      line: lineAt(source, match.index + match[0].length - match[0].trimStart().length),
      text: unwrap(match[group] ?? ""),
    }));
  return [...commentsOf(BLOCK, 1), ...commentsOf(LINES, 0), ...commentsOf(TRAILING, 1)];
};

/** Code in back-quotes, a quotation and a URL count as one word each. */
const ONE_WORD = /`[^`]*`|"[^"\n]*"|https?:\/\/\S+/g;
/** A blank line, a list item, the end of a cell of a table and a tag of a docstring end the sentence before them. */
const BLOCK_BREAK = /\n\s*\n|\n\s*(?:[-*]|\d+[.)])\s+|(?:^|\s)\|(?=\s)|\n(?=@)/;

/** Splits a comment into sentences, with its lines joined. */
export const commentSentences = (text: string): readonly string[] =>
  text
    .replace(ONE_WORD, "CODE")
    .split(BLOCK_BREAK)
    .map((block) => block.replaceAll(/\s+/g, " ").trim())
    .flatMap(sentencesOf);
