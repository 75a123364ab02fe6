/** A fenced block of a document: its language, and its lines. */
interface Block {
  readonly language: string;
  readonly text: string;
}

const blocksOf = (markdown: string): readonly Block[] =>
  [...markdown.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language = "", text = ""]) => ({ language, text }));

/** A command begins with a program or with a variable. The drawing of README does not. */
const COMMAND = /^(?:[A-Z_]+=\S+ )?(?:npm|npx|forebay|docker|helm|curl)\b/;

/** Returns the command lines of a document, without comments, in their order. */
export const commandLines = (markdown: string): readonly string[] =>
  blocksOf(markdown)
    .filter(({ language }) => language === "")
    .flatMap(({ text }) => text.split("\n"))
    .map((line) => line.replace(/\s+#.*$/, "").trim())
    .filter((line) => COMMAND.test(line));

/** Returns the complete configurations below a heading of a document. Below the title, these are those of the whole document. */
export const configurationsBelow = (markdown: string, heading: string): readonly string[] => {
  const [, level = ""] = /^(#+) /.exec(heading) ?? [];
  const [, section = ""] = `\n${markdown}`.split(`\n${heading}\n`);
  const [own = ""] = section.split(`\n${level} `);
  return blocksOf(own).flatMap(({ language, text }) => (language === "yaml" && /^chains:/m.test(text) ? [text] : []));
};

/** Returns the first YAML block of a document. */
export const firstYaml = (markdown: string): string =>
  blocksOf(markdown).find(({ language }) => language === "yaml")?.text ?? "";
