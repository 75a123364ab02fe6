import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { z } from "zod";
import { readArguments, readConfig } from "../../src/config/readConfig.ts";
import { readRepositoryFile } from "./repositoryFiles.ts";

const PAGE = readRepositoryFile("docs/from-erpc.md");
const [, OWN = ""] = /```yaml\n(.*?)```/s.exec(PAGE) ?? [];
const ERPC = readRepositoryFile("test/docs/erpc.yaml");
const ENVIRONMENT = { KEY: "k", KEY_A: "a" };

/** Returns the path of each value; `[]` stands for each element of a list. */
const pathsOf = (value: unknown, path = ""): readonly string[] => {
  if (Array.isArray(value)) {
    return value.flatMap((each) => pathsOf(each, `${path}[]`));
  }
  return typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([name, each]) => pathsOf(each, path === "" ? name : `${path}.${name}`))
    : [path];
};

const rule = z.object({ maxCount: z.number(), period: z.literal("second") });

const erpcFile = z.looseObject({
  server: z.object({ httpHostV4: z.string(), httpPortV4: z.number() }),
  projects: z.array(
    z.looseObject({
      cors: z.object({ allowedOrigins: z.array(z.string()) }),
      networks: z.array(z.looseObject({ alias: z.string(), evm: z.object({ chainId: z.number() }) })),
      upstreams: z.array(
        z.looseObject({
          ...{ id: z.string(), endpoint: z.string(), evm: z.object({ chainId: z.number() }) },
          ...{ tags: z.array(z.string()).default([]), rateLimitBudget: z.string().optional() },
          ignoreMethods: z.array(z.string()).default([]),
        }),
      ),
    }),
  ),
  rateLimiters: z.object({ budgets: z.array(z.object({ id: z.string(), rules: z.tuple([rule]) })) }),
});

test("the table has each line of erpc.yaml, and no other", () => {
  const cells = [...PAGE.matchAll(/^\| (`[^|]+) \|/gm)].map(([, cell = ""]) => cell);
  const paths = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, path = ""]) => path));
  assert.deepEqual(paths.toSorted(), [...new Set(pathsOf(parse(ERPC)))].toSorted());
});

test("the converted file is valid, and has the chains, nodes and limits of the erpc.yaml", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "forebay-erpc-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "forebay.yaml");
  writeFileSync(file, OWN);
  const { chains, server, access } = readConfig(readArguments(["--config", file], ENVIRONMENT), ENVIRONMENT);
  const erpc = erpcFile.parse(parse(ERPC.replaceAll(`\${KEY_A}`, ENVIRONMENT.KEY_A)));
  const [project] = erpc.projects;
  assert.ok(project && erpc.projects.length === 1);
  const limits = new Map(erpc.rateLimiters.budgets.map(({ id, rules: [{ maxCount }] }) => [id, maxCount]));
  assert.deepEqual(
    chains.map(({ name, chainId, nodes }) => ({
      ...{ alias: name, chainId },
      nodes: nodes.map(({ name: id, url, priority, requestsPerSecond, methods }) => ({
        ...{ id, endpoint: url, priority, limit: requestsPerSecond, never: methods?.never ?? [] },
      })),
    })),
    project.networks.map(({ alias, evm: { chainId } }) => ({
      ...{ alias, chainId },
      nodes: project.upstreams
        .filter(({ evm }) => evm.chainId === chainId)
        .map(({ id, endpoint, tags, rateLimitBudget = "", ignoreMethods }) => ({
          ...{ id, endpoint, priority: tags.includes("tier:fallback") ? 1 : 0 },
          ...{ limit: limits.get(rateLimitBudget), never: ignoreMethods },
        })),
    })),
  );
  assert.deepEqual([server.host, server.port], [erpc.server.httpHostV4, erpc.server.httpPortV4]);
  assert.deepEqual(server.corsOrigins, project.cors.allowedOrigins);
  assert.equal(access.keys[0]?.limit?.calls, limits.get("clients"));
});
