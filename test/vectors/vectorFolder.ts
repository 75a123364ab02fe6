import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** Public test data beside the project. `VECTORS` names another folder with the same structure. */
export const vectorFolder = resolve(process.env.VECTORS ?? join(import.meta.dirname, "../../../shared/vectors"));

export const readVector = (path: string): string => {
  const file = join(vectorFolder, path);
  if (!existsSync(file)) {
    throw new Error(`no vectors: ${file} is missing (VECTORS=<folder> names another place)`);
  }
  return readFileSync(file, "utf8");
};

export const readJson = (path: string): unknown => JSON.parse(readVector(path));

/** Reads one JSON value per line. */
export const readJsonLines = (path: string): unknown[] =>
  readVector(path)
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

export interface Exchange {
  readonly request: Request;
  /** The expected response, parsed. */
  readonly response: Readonly<Record<string, unknown>>;
}

export interface Request {
  readonly jsonrpc: string;
  readonly id: unknown;
  readonly method: string;
  readonly params?: readonly unknown[];
}

/** One `.io` file of execution-apis: comments, then requests each followed (at once or at the end) by its response. */
export interface Vector {
  readonly name: string;
  readonly method: string;
  readonly specOnly: boolean;
  readonly exchanges: readonly Exchange[];
}

const parseVector = (method: string, file: string): Vector => {
  const lines = readFileSync(join(vectorFolder, "execution-apis/tests", method, file), "utf8").split("\n");
  const after = (mark: string) => lines.filter((line) => line.startsWith(mark)).map((line) => line.slice(mark.length));
  const responses = after("<< ");
  return {
    name: `${method}/${file}`,
    method,
    specOnly: lines.some((line) => line.startsWith("//") && line.includes("speconly:")),
    exchanges: after(">> ").map((text, index) => ({
      request: JSON.parse(text),
      response: JSON.parse(responses[index] ?? "{}"),
    })),
  };
};

/** All vectors of execution-apis, by method and name. Throws if the folder does not exist. */
export const readVectors = (): readonly Vector[] => {
  const folder = join(vectorFolder, "execution-apis/tests");
  if (!existsSync(folder)) {
    throw new Error(`no vectors: ${folder} does not exist (VECTORS=<folder> names another)`);
  }
  return readdirSync(folder)
    .sort()
    .flatMap((method) =>
      readdirSync(join(folder, method))
        .filter((file) => file.endsWith(".io"))
        .sort()
        .map((file) => parseVector(method, file)),
    );
};
