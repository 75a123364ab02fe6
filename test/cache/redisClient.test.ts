import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRedisUrl } from "../../src/cache/redisClient.ts";

const single = { kind: "single", hosts: [{ host: "h", port: 6379 }], db: 0, tls: false };

for (const [url, location] of [
  ["redis://h", single],
  ["redis://h:7000/3", { ...single, hosts: [{ host: "h", port: 7000 }], db: 3 }],
  ["rediss://user:p%40ss@h/", { ...single, tls: true, username: "user", password: "p@ss" }],
  ["redis://:pass@[::1]:7000", { ...single, hosts: [{ host: "::1", port: 7000 }], password: "pass" }],
  [
    "redis+sentinel://:pass@h1,h2:7000/name/2?sentinelPassword=other",
    {
      kind: "sentinel",
      hosts: [
        { host: "h1", port: 26_379 },
        { host: "h2", port: 7000 },
      ],
      name: "name",
      db: 2,
      tls: false,
      password: "pass",
      sentinelPassword: "other",
    },
  ],
  [
    "rediss+cluster://h1,h2",
    {
      kind: "cluster",
      hosts: [
        { host: "h1", port: 6379 },
        { host: "h2", port: 6379 },
      ],
      db: 0,
      tls: true,
    },
  ],
] as const) {
  test(`${url} is accepted`, () => assert.deepEqual(parseRedisUrl(url), location));
}

for (const url of [
  "http://h",
  "redis://",
  "redis://h1,h2",
  "redis://h/name",
  "redis://h:0",
  "redis://h:70000",
  "redis+sentinel://h1,h2",
  "redis+cluster://h1,h2/1",
  "redis://%zz:secret@h",
]) {
  test(`${url} is rejected`, () => {
    assert.throws(
      () => parseRedisUrl(url),
      (err: Error) => /^Redis URL: /.test(err.message) && !err.message.includes("secret"),
    );
  });
}
