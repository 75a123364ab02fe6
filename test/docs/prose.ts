const FENCE = /^\s*```/;
const GENERATED = "<!-- generated";
const END_OF_GENERATED = "<!-- /generated";
/** A line that starts a block of its own: list item, heading, quotation, HTML. */
const STARTS_BLOCK = /^\s*(?:[-*]\s|\d+\.\s|#|>|<)/;
const SEPARATOR_CELL = /^:?-+:?$/;

const isFrontMatter = (lines: readonly string[], index: number): boolean =>
  lines[0] === "---" && index <= lines.indexOf("---", 1);

/** Replaces inline code by one word and links by their text. */
const plainText = (markdown: string): string =>
  markdown
    .replaceAll(/`[^`]*`/g, "CODE")
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/https?:\/\/\S+/g, "URL")
    .replaceAll(/[*_]{1,2}(\S[^*_]*)[*_]{1,2}/g, "$1")
    .replaceAll(/\s+/g, " ")
    .trim();

const cellsOf = (row: string): readonly string[] =>
  row
    .replaceAll("\\|", "/")
    .replaceAll(/`[^`]*`/g, (code) => code.replaceAll("|", "/"))
    .split("|")
    .map((cell) => cell.trim())
    .filter((cell) => cell !== "" && !SEPARATOR_CELL.test(cell));

/**
 * The prose of a Markdown text as blocks: paragraphs, list items, headings, table cells.
 * Leaves out code, front matter, quotations (`>`) and, unless `withGenerated`, generated parts.
 */
export const proseOf = (markdown: string, { withGenerated = false } = {}): readonly string[] => {
  const blocks: string[] = [];
  let current: string[] = [];
  let isCode = false;
  let isGenerated = false;
  const endBlock = (): void => {
    if (current.length > 0) {
      blocks.push(current.join(" "));
    }
    current = [];
  };
  for (const [index, line] of markdown.split("\n").entries()) {
    if (line.startsWith(GENERATED)) {
      isGenerated = !withGenerated;
    }
    if (line.startsWith(END_OF_GENERATED)) {
      isGenerated = false;
    }
    if (FENCE.test(line)) {
      isCode = !isCode;
    }
    const isProse = !isCode && !isGenerated && !FENCE.test(line) && !isFrontMatter(markdown.split("\n"), index);
    if (!isProse || line.trim() === "" || STARTS_BLOCK.test(line) || line.startsWith("|")) {
      endBlock();
    }
    if (!isProse || /^\s*[><]/.test(line)) {
      continue;
    }
    if (line.startsWith("|")) {
      blocks.push(...cellsOf(line));
    } else if (line.trim() !== "") {
      current.push(line.trim().replace(/^(?:[-*]|\d+\.|#+)\s+/, ""));
    }
    if (line.startsWith("#")) {
      endBlock();
    }
  }
  endBlock();
  return blocks.map(plainText).filter((block) => block !== "");
};

/** Splits a block of prose after `.`, `!` or `?` if a capital, a digit, a quotation mark or the project's name follows. */
export const sentencesOf = (block: string): readonly string[] =>
  block.split(/(?<=[.!?]["')]?)\s+(?=["'(]?(?:[A-Z\d]|forebay\b))/).filter((sentence) => sentence !== "");

/** Counts the words of a sentence: runs of characters with a letter or digit. A list of code counts as one word. */
export const countWords = (sentence: string): number =>
  sentence
    .replaceAll(/CODE(?:,? (?:or |and )?CODE)+/g, "CODE")
    .split(/\s+/)
    .filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
