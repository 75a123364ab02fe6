import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ConfigError, formatSchema, readArguments, readConfig } from "../../src/config/readConfig.ts";

const read = (argv: readonly string[], environment: Record<string, string> = {}) =>
  readConfig(readArguments(argv, environment), environment);

const faultsOf = (run: () => unknown): readonly string[] => {
  try {
    run();
  } catch (error) {
    if (error instanceof ConfigError) {
      return error.faults;
    }
    throw error;
  }
  return [];
};

const withFile = <T>(content: string, use: (file: string) => T): T => {
  const folder = mkdtempSync(join(tmpdir(), "forebay-config-"));
  try {
    const file = join(folder, "forebay.yaml");
    writeFileSync(file, content);
    return use(file);
  } finally {
    rmSync(folder, { recursive: true });
  }
};

test("flags describe one chain, and environment variables replace flags", () => {
  const config = read(["--upstream", "http://a:1", "--upstream", "http://b:1", "--port", "0"], {
    FOREBAY_FEED: "ws://f:1,ws://f:2",
    FOREBAY_PORT: "9",
  });
  assert.deepEqual(
    config.chains[0]?.nodes.map(({ url }) => url),
    ["http://a:1", "http://b:1"],
  );
  assert.deepEqual(config.chains[0]?.pending.feeds, ["ws://f:1", "ws://f:2"]);
  assert.equal(config.server.port, 0);
});

test("a file may take values from the environment", () => {
  withFile(
    "chains:\n  - name: op\n    nodes: [{ url: 'https://node/${KEY}' }]\nserver: { host: '${HOST:-::1}' }\n",
    (file) => {
      const config = read(["--config", file, "--port", "1"], { KEY: "k1" });
      assert.equal(config.chains[0]?.nodes[0]?.url, "https://node/k1");
      assert.equal(config.server.host, "::1");
      assert.equal(config.server.port, 1);
      assert.deepEqual(
        faultsOf(() => read(["--config", file])),
        ["chains[0].nodes[0].url: the environment has no KEY"],
      );
    },
  );
});

test("a value may be the content of a file, without the newline at its end", () => {
  withFile("a\n", (token) => {
    const content = `chains:
  - name: op
    nodes: [{ url: "http://\${NAME}/\${file:${token}}", headers: { key: "\${file:${token}}" }, priority: "\${file:${token}}" }]
`;
    const tries: readonly (readonly [content: string, read: string])[] = [
      ["2", "2"],
      ["2\n", "2"],
      ["2\r\n", "2"],
      ["2\n\n", "2\n"],
      ["${NAME}\n", "${NAME}"],
      ["$&", "$&"],
    ];
    for (const [text, expected] of tries) {
      writeFileSync(token, text);
      withFile(content.replace(/, priority.*"/, ""), (file) => {
        const [node] = read(["--config", file], { NAME: "node" }).chains[0]?.nodes ?? [];
        assert.deepEqual([node?.url, node?.headers.key], [`http://node/${expected}`, expected]);
      });
    }
    writeFileSync(token, "3\n");
    withFile(content, (file) => {
      assert.equal(read(["--config", file], { NAME: "node" }).chains[0]?.nodes[0]?.priority, 3);
    });
    // The content is never repeated, also if it is wrong.
    writeFileSync(token, "s3cret\n");
    withFile(content, (file) => {
      assert.deepEqual(
        faultsOf(() => read(["--config", file], { NAME: "node" })),
        ["chains[0].nodes[0].priority: Invalid input: expected number, received string"],
      );
    });
  });
});

test("a file that cannot be read is a fault with the path of the option", () => {
  const content = 'chains: [{ name: op, nodes: [{ url: "http://${file:/no/such/file}/${file:/}" }] }]\n';
  withFile(content, (file) => {
    assert.deepEqual(
      faultsOf(() => read(["--config", file])),
      [
        "chains[0].nodes[0].url: cannot read the file /no/such/file (ENOENT)",
        "chains[0].nodes[0].url: cannot read the file / (EISDIR)",
      ],
    );
  });
});

test("a number or boolean may be in an environment variable, and a text that looks like one stays a text", () => {
  const content = `chains:
  - name: op
    chainId: \${ID}
    logs: { maxBlocks: "\${BLOCKS}" }
    nodes: [{ url: http://node, headers: { tenant: "\${ID}" }, requestsPerSecond: "\${RATE}" }]
server: { port: "\${PORT:-0}", statusPage: "\${PAGE}" }
`;
  withFile(content, (file) => {
    const given = { ID: "10", BLOCKS: "none", RATE: "2.5", PAGE: "false" };
    const { chains, server } = read(["--config", file], given);
    assert.deepEqual(
      [chains[0]?.chainId, chains[0]?.logs.maxBlocks, chains[0]?.nodes[0]?.headers.tenant],
      [10, "none", "10"],
    );
    assert.deepEqual([chains[0]?.nodes[0]?.requestsPerSecond, server.port, server.statusPage], [2.5, 0, false]);
    assert.equal(read(["--config", file], { ...given, BLOCKS: "7" }).chains[0]?.logs.maxBlocks, 7);
    assert.deepEqual(
      faultsOf(() => read(["--config", file], { ...given, PORT: "8545x", PAGE: "yes" })),
      [
        "server.port: Invalid input: expected number, received string",
        "server.statusPage: Invalid input: expected boolean, received string",
      ],
    );
  });
});

test("all faults are reported together, each with its path, never with a URL", () => {
  withFile(
    "chains:\n  - name: Op\n    nodes: [{ url: 'ftp://user:secret@node' }]\n    colour: red\nserver: { port: 70000 }\n",
    (file) => {
      const faults = faultsOf(() => read(["--config", file]));
      assert.deepEqual(faults.map((fault) => fault.split(": ")[0]).sort(), [
        "chains[0]",
        "chains[0].name",
        "chains[0].nodes[0].url",
        "server.port",
      ]);
      assert.doesNotMatch(faults.join("\n"), /secret/);
    },
  );
});

test("a text at the place of a chain's name is not repeated in an error", () => {
  withFile(
    "chains:\n  - { name: 'user:secret', nodes: [{ url: 'http://a' }] }\n  - { name: op, nodes: [{ url: 'http://b' }] }\n" +
      "server: { readiness: [user:secret, base] }\n",
    (file) => {
      const faults = faultsOf(() => read(["--config", file]));
      assert.doesNotMatch(faults.join("\n"), /secret/);
      assert.deepEqual(faults.slice(1), [
        "server.readiness[0]: lower-case letters, digits and dashes, a letter first",
        'server.readiness[1]: no chain has the name "base"; configured chains: op',
      ]);
    },
  );
});

test("names of chains must differ", () => {
  withFile(
    "chains:\n  - { name: op, nodes: [{ url: 'http://a' }] }\n  - { name: op, nodes: [{ url: 'http://b' }] }\n",
    (file) => {
      assert.deepEqual(
        faultsOf(() => read(["--config", file])),
        ["chains: names must differ"],
      );
    },
  );
});

test("a configuration without a chain, unknown flags and unknown commands have clear errors", () => {
  assert.match(faultsOf(() => read([])).join(), /--upstream URL, --provider NAME:KEY or --config FILE/);
  assert.match(faultsOf(() => read(["--nonsense"])).join(), /--nonsense/);
  assert.match(faultsOf(() => read(["fly"])).join(), /unknown command fly/);
});

test("the schema is JSON Schema with defaults", () => {
  const schema: { properties: { server: { properties: { port: { default: number } } } } } = JSON.parse(formatSchema());
  assert.equal(schema.properties.server.properties.port.default, 8545);
});

test("an unknown key comes with the key that was meant", () => {
  const text = `
chains:
  - name: op
    nodes: [{ url: "http://x", wsURL: "ws://x" }]
    upstream: { hedge: { aftrMs: 3 } }
cach: {}
server: { prot: 5, unrelated: 1 }
`;
  let faults: readonly string[] = [];
  withFile(text, (file) => {
    faults = faultsOf(() => read(["--config", file]));
  });
  assert.deepEqual(faults, [
    'chains[0].nodes[0]: unknown key "wsURL": did you mean "wsUrl"?',
    'chains[0].upstream.hedge: unknown key "aftrMs": did you mean "afterMs"?',
    'server: unknown key "prot": did you mean "port"?',
    'server: unknown key "unrelated"',
    '(top level): unknown key "cach": did you mean "cache"?',
  ]);
});

test("a bad value of a flag names the flag and the variable", () => {
  assert.deepEqual(
    faultsOf(() => read(["--upstream", "http://x"], { FOREBAY_PORT: "tcp://10.0.0.1:80" })),
    ['server.port (--port or FOREBAY_PORT): "tcp://10.0.0.1:80" is not a number'],
  );
});

test("a mapping in the place of a key is refused without its content", () => {
  withFile("chains: [{ name: a, nodes: [{ url: 'http://a', { authorization: s3cret } }] }]\n", (file) => {
    const faults = faultsOf(() => read(["--config", file])).join("\n");
    assert.notEqual(faults, "");
    assert.doesNotMatch(faults, /s3cret/);
  });
});

test("a key without a colon is named without the value behind it", () => {
  withFile('chains: [{ name: a, nodes: [{ url "http://user:s3cret@node" }] }]\n', (file) => {
    const faults = faultsOf(() => read(["--config", file]));
    assert.ok(faults.includes('chains[0].nodes[0]: unknown key "url…"'), faults.join("\n"));
    assert.doesNotMatch(faults.join("\n"), /s3cret/);
  });
});

test("a removed option is a fault that says what holds instead", () => {
  withFile("chains: [{ name: a, nodes: [{ url: http://a }] }]\nserver: { processes: 2 }\n", (file) => {
    assert.deepEqual(
      faultsOf(() => read(["--config", file])),
      [
        "server: processes is removed: one process serves. Use replicas, on one machine with server.reusePort (docs/operate.md)",
      ],
    );
  });
});

/** Options that are removed, in a chain or beside it, and how their error begins. */
const REMOVED: readonly { readonly chain?: string; readonly process?: string; readonly fault: string }[] = [
  {
    chain: "simulate: { engine: auto }",
    fault: "chains[0].simulate.engine: auto is removed: use fast, the default",
  },
  {
    chain: "simulate: { compareShare: 0.1 }",
    fault: "chains[0].simulate: compareShare is removed: no run is compared while forebay serves",
  },
  {
    chain: "state: { source: execute }",
    fault: "chains[0].state.source: execute is removed: use auto, which reads block access lists and traces",
  },
  {
    chain: "simulate: { enabled: false }",
    fault: "chains[0].simulate: enabled is removed: forks: none executes nothing here",
  },
  {
    chain: "upstream: { hedge: false }",
    fault: "chains[0].upstream.hedge: false is removed: set hedge.maxShare to 0",
  },
  {
    chain: "finality: node",
    fault: "chains[0].finality: node is removed: it holds without finality.depth",
  },
  {
    chain: "customMethods: [{ name: own_read, retention: head }]",
    fault: "chains[0]: customMethods is removed: a method that forebay does not know is forwarded unchanged",
  },
  {
    chain: "state: { never: [] }",
    fault: "chains[0].state: never is removed: state.follow: false reads the state of all accounts from nodes",
  },
  {
    process: 'access: { jwt: { jwksUrl: "https://i/jwks", issuer: i, algorithms: [ES256] } }',
    fault: "access.jwt: algorithms is removed: any signature with a public key is accepted",
  },
  {
    process: "cache: { unconfirmedMs: 1000 }",
    fault: "cache: unconfirmedMs is removed: with nodes of several providers, a value that no hash proves",
  },
  {
    chain: "state: { agree: 2 }",
    fault: "chains[0].state: agree is removed: reads.agree holds for state, calls and logs",
  },
  {
    chain: "logs: { agree: 1 }",
    fault: "chains[0].logs: agree is removed: reads.agree holds for state, calls and logs",
  },
  {
    chain: "pending: { askNodeNonce: true }",
    fault: "chains[0].pending: askNodeNonce is removed: the pending nonce counts what was sent",
  },
];

for (const { chain = "", process = "", fault } of REMOVED) {
  test(`the removed option ${chain}${process} is an error that says what holds instead`, () => {
    const content = `chains: [{ name: a, nodes: [{ url: "http://a" }], ${chain} }]\n${process}\n`;
    const [text = ""] = withFile(content, (file) => faultsOf(() => read(["--config", file])));
    assert.ok(text.startsWith(fault), text);
  });
}

test("processes that share a port need Redis, also for their limits of calls", () => {
  const faults = (more: string): readonly string[] => {
    const content = `chains: [{ name: a, nodes: [{ url: "http://a" }] }]\nserver: { reusePort: true }\n${more}`;
    return withFile(content, (file) => faultsOf(() => read(["--config", file])));
  };
  assert.deepEqual(faults(""), [
    "server.reusePort: processes that share a port share limits, budgets, filters and nonces in Redis: set cache.redis",
  ]);
  const redis = 'cache: { redis: "redis://r" }';
  assert.deepEqual(faults(`${redis}\naccess: { limitPerAddress: { calls: 5 } }`), [
    "access.limitStore: with server.reusePort, processes count calls together: set access.limitStore to redis",
  ]);
  assert.deepEqual(faults(`${redis}\naccess: { limitStore: redis, limitPerAddress: { calls: 5 } }`), []);
  assert.deepEqual(faults(redis), []);
});

test("payments have exactly one kind of price", () => {
  const address = `"0x${"0".repeat(40)}"`;
  const configOf = (price: string) => `
chains: [{ name: op, nodes: [{ url: "http://a" }] }]
access:
  payment:
    payTo: ${address}
    network: eip155:8453
    asset: { address: ${address}, name: USD Coin, version: "2" }
    price: ${price}
    facilitator: { url: "http://f" }
`;
  const faults = (content: string): readonly string[] => {
    let found: readonly string[] = [];
    withFile(content, (file) => {
      found = faultsOf(() => read(["--config", file]));
    });
    return found;
  };
  assert.deepEqual(faults(configOf('{ default: "0.1" }')), []);
  const both = configOf('{ default: "0.1", perUnit: "0.1" }');
  assert.deepEqual(faults(both), ["access.payment.price: set either default or perUnit"]);
  const number = configOf("{ default: 0.1 }");
  assert.equal(faults(number).length, 1);
});
