import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A crate that is part of a module. */
export interface Crate {
  readonly name: string;
  readonly version: string;
  /** SPDX expression. */
  readonly license: string;
  /** Path of its Cargo.toml. */
  readonly manifest: string;
}

const LICENSE_FILE = /^(licen[cs]e|copying|copyright|notice|unlicense)/i;
const MIT_FILE = /mit/i;

/** Returns the notice that is delivered with the modules: all crates, and the text of each of their licences once. */
export const formatNotice = (crates: readonly Crate[]): string => {
  const list = crates.map(({ name, version, license }) => `${name} ${version}: ${license}\n`);
  const owners = new Map<string, { readonly text: string; readonly names: string[] }>();
  for (const crate of crates) {
    for (const text of licenseTexts(crate)) {
      const words = text.replace(/\s+/g, " ");
      const owner = owners.get(words) ?? { text, names: [] };
      owner.names.push(`${crate.name} ${crate.version}`);
      owners.set(words, owner);
    }
  }
  const texts = [...owners.values()].map(({ text, names }) => `\n---- ${names.join(", ")}\n\n${text}\n`);
  return `The modules in this folder contain the following crates, under the licences below.\n\n${list.join("")}${texts.join("")}`;
};

/** Of a choice of licences that includes MIT, MIT is used. */
const licenseTexts = ({ license, manifest }: Crate): readonly string[] => {
  const folder = dirname(manifest);
  const files = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && LICENSE_FILE.test(entry.name))
    .map(({ name }) => name)
    .sort();
  const mit = license.includes("MIT") && !license.includes("AND") ? files.filter((name) => MIT_FILE.test(name)) : [];
  return (mit.length > 0 ? mit : files).map((name) =>
    readFileSync(join(folder, name), "utf8").replaceAll("\r", "").trim(),
  );
};
