import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { readRepositoryFile } from "../docs/repositoryFiles.ts";

const names = z.union([z.string().transform((name) => [name]), z.array(z.string())]);
const lockSchema = z.object({
  lockfileVersion: z.literal(3),
  packages: z.record(
    z.string(),
    z.looseObject({
      resolved: z.string().optional(),
      integrity: z.string().optional(),
      optional: z.boolean().optional(),
      dev: z.boolean().optional(),
      os: names.optional(),
      cpu: names.optional(),
      libc: names.optional(),
    }),
  ),
});

const { packages } = lockSchema.parse(JSON.parse(readRepositoryFile("package-lock.json")));
const entries = Object.entries(packages).filter(([path]) => path !== "");

test("every package that has an address has the SHA-512 of its content, and comes from the registry", () => {
  assert.ok(entries.length > 100);
  for (const [path, { resolved, integrity }] of entries) {
    if (resolved !== undefined) {
      assert.match(resolved, /^https:\/\/registry\.npmjs\.org\//, path);
      assert.match(integrity ?? "", /^sha512-[A-Za-z0-9+/]{86}==$/, path);
    }
  }
});

/** The platform of CI. The image has no development tools. */
const CI = { os: "linux", cpu: "x64", libc: "glibc" };

const runsOn = (own: readonly string[] | undefined, value: string): boolean => own === undefined || own.includes(value);

test("a package without a SHA-512 is a development tool for another platform", () => {
  const bare = entries.filter(([, { integrity }]) => integrity === undefined);
  for (const [path, { optional, dev, os, cpu, libc }] of bare) {
    assert.ok(optional === true && dev === true, path);
    assert.equal(runsOn(os, CI.os) && runsOn(cpu, CI.cpu) && runsOn(libc, CI.libc), false, path);
  }
});
