import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { readComments } from "./comments.ts";
import { documentPaths, ROOT, readRepositoryFile, repositoryFiles } from "./repositoryFiles.ts";

/** The only file that may name a folder outside the repository, and no more often than once. */
const VECTOR_FOLDER_FILE = "test/vectors/vectorFolder.ts";
const OUTSIDE_FOLDER = ["shared", ""].join("/");

const withoutCode = (markdown: string): string => markdown.replaceAll(/```.*?```/gs, "").replaceAll(/`[^`\n]*`/g, "");

/** Targets of all links and pictures that are no URLs. */
const linksOf = (markdown: string): readonly string[] =>
  [...withoutCode(markdown).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = ""]) => link)
    .filter((link) => !/^[a-z]+:/.test(link));

/** Anchors of a page, as GitHub makes them from its headings. */
const anchorsOf = (markdown: string): ReadonlySet<string> => {
  const anchors = new Set<string>();
  for (const [, heading = ""] of markdown.replaceAll(/```.*?```/gs, "").matchAll(/^#+ (.+)$/gm)) {
    const slug = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-");
    let anchor = slug;
    for (let copy = 1; anchors.has(anchor); copy++) {
      anchor = `${slug}-${copy}`;
    }
    anchors.add(anchor);
  }
  return anchors;
};

test("every link and picture has a target, and every anchor a heading", () => {
  let links = 0;
  for (const page of documentPaths()) {
    for (const link of linksOf(readRepositoryFile(page))) {
      const [path = "", anchor] = link.split("#");
      const target = path === "" ? page : join(dirname(page), path);
      assert.ok(existsSync(join(ROOT, target)), `${page}: ${link}`);
      if (anchor !== undefined) {
        assert.ok(anchorsOf(readRepositoryFile(target)).has(anchor), `${page}: ${link}`);
      }
      links += 1;
    }
  }
  assert.ok(links >= 30, `${links} links`);
});

test("every document can be reached from the README", () => {
  const seen = new Set(["README.md"]);
  for (const page of seen) {
    for (const link of linksOf(readRepositoryFile(page))) {
      const target = join(dirname(page), link.split("#")[0] ?? "");
      if (target.endsWith(".md")) {
        seen.add(target);
      }
    }
  }
  const pages = documentPaths().filter((path) => !path.startsWith(".github/"));
  assert.deepEqual([...seen].toSorted(), pages);
});

test("every path that a document names exists", () => {
  const missing = documentPaths().flatMap((page) =>
    [...readRepositoryFile(page).matchAll(/(?<=[\s`])((?:src|test|docs|grafana|helm|\.ci)\/[\w./-]*)(?=[\s`).,;])/g)]
      .map(([, path = ""]) => path)
      .filter((path) => !existsSync(join(ROOT, path)))
      .map((path) => `${page}: ${path}`),
  );
  assert.deepEqual(missing, []);
});

test("no file names a folder outside the repository, except the default folder of the vectors", () => {
  const citing = repositoryFiles().filter((path) => readRepositoryFile(path).includes(OUTSIDE_FOLDER));
  assert.deepEqual(citing, [VECTOR_FOLDER_FILE]);
  assert.equal(readRepositoryFile(VECTOR_FOLDER_FILE).split(OUTSIDE_FOLDER).length, 2);
});

test("every Markdown file that a text names is in the repository; sources name it by its path", () => {
  const files = repositoryFiles();
  const missing = files.flatMap((path) =>
    [
      ...readRepositoryFile(path)
        .replaceAll(/https?:\/\/\S+/g, "")
        .matchAll(/[\w./-]*\w\.md\b/g),
    ]
      .map(([name]) => name.replace(/^(?:\.\.?\/)+/, ""))
      .filter(
        (name) => !files.some((file) => file === name || (!/^(?:src|test)\//.test(path) && file.endsWith(`/${name}`))),
      )
      .map((name) => `${path}: ${name}`),
  );
  assert.deepEqual(missing, []);
});

/** A citation of a section: page, comma, headings, up to the end of the phrase. */
const CITATION = /(docs\/[\w./-]+\.md), ([^.;:)]+)/g;

/** Texts that a citation may name: headings, and invariants of the architecture page. */
const sectionsOf = (markdown: string): ReadonlySet<string> =>
  new Set([
    ...[...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading),
    ...[...markdown.matchAll(/^\*\*(\d+)\. /gm)].map(([, number]) => `invariant ${number}`),
  ]);

test("every section that a comment cites is a heading of that page", () => {
  let citations = 0;
  const missing = repositoryFiles()
    .filter((path) => path.endsWith(".ts") && path !== "test/docs/links.test.ts")
    .flatMap((path) =>
      readComments(readRepositoryFile(path)).flatMap(({ line, text }) =>
        [...text.replaceAll(/\s+/g, " ").matchAll(CITATION)].flatMap(([, page = "", sections = ""]) => {
          const known = sectionsOf(readRepositoryFile(page));
          citations += 1;
          return sections
            .split(", ")
            .filter((section) => !known.has(section.trim()))
            .map((section) => `${path}:${line}: ${page}, ${section}`);
        }),
      ),
    );
  assert.deepEqual(missing, []);
  assert.ok(citations >= 30, `${citations} citations`);
});
