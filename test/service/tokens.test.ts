import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, type TestContext, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import { WebSocket } from "ws";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { listen } from "../support/servers/ports.ts";
import { createService, type Service } from "../support/servers/service.ts";

const ISSUER = "https://login.example";
const AUDIENCE = "rpc";
/** Time between pings, when tokens are verified again. It passes only in the clock of a test: each ping needs a pong before the next one. */
const PING_MS = 250;
const RECHECK_MS = 1;
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

interface IssuerKey {
  readonly kid: string;
  readonly privateKey: CryptoKey;
  readonly jwk: object;
}

const createIssuerKey = async (kid: string): Promise<IssuerKey> => {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  return { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: "ES256" } };
};

let issuerKey: IssuerKey;
let published: readonly object[];
let isIssuerDown = false;
let reads = 0;
const issuer = createServer((_, response) => {
  reads++;
  if (isIssuerDown) {
    response.writeHead(500).end();
  } else {
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ keys: published }));
  }
});

let node: FakeNode;
let service: Service;
let jwksUrl: string;

const access = () => ({
  keys: [
    { name: "wallet", sha256: sha256("k-wallet"), chains: ["op"] },
    { name: "old", sha256: sha256("k-old"), expires: "2020-01-01T00:00:00Z" },
  ],
  jwt: { jwksUrl, issuer: ISSUER, audience: AUDIENCE },
});

const startService = (): Promise<Service> =>
  createService(
    ["op", "base"].map((name) => ({ name, nodes: [{ url: node.url }] })),
    { access: access() },
  );

before(async () => {
  issuerKey = await createIssuerKey("one");
  published = [issuerKey.jwk];
  const port = await listen(issuer);
  jwksUrl = `http://127.0.0.1:${port}/keys`;
  node = await createFakeNode();
  service = await startService();
});
after(async () => {
  await service?.close();
  await node?.close();
  issuer.close();
  issuer.closeAllConnections();
});

const inOneHour = (): number => Math.floor(Date.now() / 1_000) + 3_600;

const sign = (
  claims: JWTPayload = {},
  { kid, privateKey }: Pick<IssuerKey, "kid" | "privateKey"> = issuerKey,
  expires = true,
): Promise<string> =>
  new SignJWT({ iss: ISSUER, aud: AUDIENCE, sub: "alice", ...(expires && { exp: inOneHour() }), ...claims })
    .setProtectedHeader({ alg: "ES256", kid })
    .sign(privateKey);

const call = async (token: string, chain = "op", method = "eth_chainId") => {
  const { status, body } = await rpc(`${service.url}/${chain}`, method, [], { authorization: `Bearer ${token}` });
  return { status, message: body.error?.message, result: body.result };
};

test("a token of the issuer is admitted, and is verified once", async () => {
  const token = await sign();
  assert.equal((await call(token)).status, 200);
  const readsBefore = reads;
  assert.equal((await call(token, "base")).status, 200);
  assert.equal(reads, readsBefore);
});

test("any other token is refused with its reason", async () => {
  const stranger = await createIssuerKey("one");
  const unsigned = new UnsecuredJWT({ iss: ISSUER, aud: AUDIENCE, sub: "alice", exp: inOneHour() }).encode();
  // The public key of the issuer as a shared secret.
  const forged = await new SignJWT({ iss: ISSUER, aud: AUDIENCE, sub: "alice", exp: inOneHour() })
    .setProtectedHeader({ alg: "HS256", kid: "one" })
    .sign(Buffer.from(JSON.stringify(issuerKey.jwk)));
  const cases: readonly (readonly [string, string])[] = [
    [await sign({ exp: 1_600_000_000 }), "the token has expired"],
    [await sign({ iss: "https://other.example" }), "the token is not valid: claim iss"],
    [await sign({ aud: "mail" }), "the token is not valid: claim aud"],
    [await sign({ nbf: inOneHour() }), "the token is not valid: claim nbf"],
    [await sign({}, issuerKey, false), "the token is not valid: claim exp"],
    [await sign({ sub: "" }), "the token needs a subject of 1 to 128 characters"],
    [await sign({ chains: "op" }), "the claim chains of the token is not a list of names"],
    [await sign({}, stranger), "the token is not valid"],
    [await sign({}, { ...stranger, kid: "unknown" }), "the token is not valid"],
    [`${unsigned}x`, "the token is not valid"],
    [forged, "the token is not valid"],
  ];
  for (const [token, message] of cases) {
    assert.deepEqual(await call(token), { status: 401, message, result: undefined }, message);
  }
  assert.match((await call("no-token")).message ?? "", /the API key is not valid/);
});

test("claims restrict a token to chains and methods", async () => {
  const token = await sign({ chains: ["base"], methods: ["eth_chain*"] });
  assert.equal((await call(token, "base")).status, 200);
  assert.deepEqual(await call(token, "op"), {
    status: 403,
    message: "the API key may not use the chain op",
    result: undefined,
  });
  assert.equal(
    (await call(token, "base", "eth_blockNumber")).message,
    "the method eth_blockNumber is not allowed here",
  );
});

test("a key is restricted to its chains, by name, by chain id and for WebSockets, and expires", async () => {
  const withKey = (path: string, key: string) => rpc(service.url + path, "eth_chainId", [], { "x-api-key": key });
  assert.equal((await withKey("/op", "k-wallet")).status, 200);
  assert.equal((await withKey("/base", "k-wallet")).status, 403);
  assert.equal((await rpc(`${service.url}/base/k-wallet`, "eth_chainId")).status, 403);
  const { status, body } = await withKey("/op", "k-old");
  assert.deepEqual([status, body.error?.message], [401, "the API key has expired"]);
  const socket = new WebSocket(`${service.url.replace("http:", "ws:")}/base`, { headers: { "x-api-key": "k-wallet" } });
  const [, response] = await once(socket, "unexpected-response");
  assert.equal(response.statusCode, 403);
});

/** Opens a WebSocket with a token. `closed` resolves with code and reason. */
const openWith = async (own: Service, token: string) => {
  const url = own.url.replace("http:", "ws:");
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } });
  const closed = once(socket, "close").then(([code, reason]) => [code, String(reason)]);
  await once(socket, "open");
  return { socket, closed };
};

const CALL = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}';

const assertAnswered = async (socket: WebSocket): Promise<void> => {
  assert.equal(socket.readyState, WebSocket.OPEN);
  const answered = once(socket, "message");
  socket.send(CALL);
  assert.match(String((await answered)[0]), /"result"/);
};

test("a WebSocket is opened with a token", async () => {
  const headers = { authorization: `Bearer ${await sign({ sub: "bob" })}` };
  const socket = new WebSocket(`${service.url.replace("http:", "ws:")}/op`, { headers });
  await once(socket, "open");
  await assertAnswered(socket);
  socket.close();
  await once(socket, "close");
});

test("the usage of a token is that of its subject, and never that of a key with the same name", async () => {
  await call(await sign({ sub: "wallet" }));
  const { keys } = Object(await (await fetch(`${service.opsUrl}/usage`)).json());
  const names: readonly string[] = keys.map(({ key }: { key: string }) => key);
  assert.ok(names.includes("token:wallet") && names.includes("wallet"));
});

test("while the issuer's keys cannot be read, a new token is answered with 503, and a verified one is served", async (t) => {
  const known = await sign({ sub: "known" });
  assert.equal((await call(known)).status, 200);
  isIssuerDown = true;
  t.after(() => {
    isIssuerDown = false;
  });
  assert.equal((await call(known)).status, 200);
  const restarted = await startService();
  t.after(() => restarted.close());
  const headers = { authorization: `Bearer ${await sign({ sub: "new" })}` };
  const { status, body } = await rpc(`${restarted.url}/op`, "eth_chainId", [], headers);
  assert.deepEqual([status, body.error?.message], [503, "the keys of the token's issuer cannot be read"]);
});

test("a token may expire later than any date", async () => {
  assert.equal((await call(await sign({ sub: "forever", exp: 1e15 }))).status, 200);
});

test("a key set above 1 MiB is not read", async (t) => {
  const large = createServer((_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ keys: published, padding: "x".repeat(1024 * 1024) }));
  });
  const port = await listen(large);
  const own = await createService(
    { name: "op", nodes: [{ url: node.url }] },
    { access: { jwt: { jwksUrl: `http://127.0.0.1:${port}`, issuer: ISSUER } } },
  );
  t.after(async () => {
    await own.close();
    large.close();
    large.closeAllConnections();
  });
  const headers = { authorization: `Bearer ${await sign({ sub: "new" })}` };
  const { status, body } = await rpc(own.url, "eth_chainId", [], headers);
  assert.deepEqual([status, body.error?.message], [503, "the keys of the token's issuer cannot be read"]);
});

test("a WebSocket with a token is closed when its issuer changes, and stays open when other rules do", async (t) => {
  const own = await createService({ name: "op", nodes: [{ url: node.url }] }, { access: access() });
  t.after(() => own.close());
  const { socket, closed } = await openWith(own, await sign({ sub: "moved" }));
  await own.reload({ access: { ...access(), deny: ["eth_mining"] } });
  await assertAnswered(socket);
  await own.reload({ access: { ...access(), jwt: { ...access().jwt, issuer: "https://other.example" } } });
  assert.equal((await closed)[0], 1008);
});

test("a WebSocket answers no call after its token has expired, before the next ping", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const own = await createService({ name: "op", nodes: [{ url: node.url }] }, { access: access() });
  t.after(() => own.close());
  const { socket, closed } = await openWith(own, await sign({ sub: "short" }));
  await assertAnswered(socket);
  t.mock.timers.setTime(1_000 * inOneHour());
  socket.on("message", () => assert.fail("it answered"));
  socket.send(CALL);
  assert.deepEqual(await closed, [1008, "the API key has expired"]);
});

test("a WebSocket is closed when its token expires", async (t) => {
  t.mock.timers.enable({ apis: ["Date", "setInterval"], now: Date.now() });
  const own = await createService(
    { name: "op", nodes: [{ url: node.url }] },
    { access: access(), server: { webSocketPingMs: PING_MS } },
  );
  t.after(() => own.close());
  const { closed } = await openWith(own, await sign({ sub: "brief" }));
  t.mock.timers.setTime(1_000 * inOneHour());
  t.mock.timers.tick(PING_MS);
  assert.deepEqual(await closed, [1008, "the API key has expired"]);
});

/** Starts a service whose pings are sent by the mocked timers of the test, and verify tokens again. */
const startRechecking = async (t: TestContext): Promise<Service> => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const own = await createService(
    { name: "op", nodes: [{ url: node.url }] },
    {
      access: { ...access(), keys: [], jwt: { ...access().jwt, recheckMs: RECHECK_MS } },
      server: { webSocketPingMs: PING_MS },
    },
  );
  t.after(() => own.close());
  return own;
};

/** Sends a ping to each WebSocket, after the time for which a verified token is known. */
const sendPings = async (t: TestContext): Promise<void> => {
  await wait(10 * RECHECK_MS);
  t.mock.timers.tick(PING_MS);
};

/** Publishes a further key. `withdraw` ends it. */
const publish = async (kid: string) => {
  const key = await createIssuerKey(kid);
  published = [issuerKey.jwk, key.jwk];
  const withdraw = (): void => {
    published = [issuerKey.jwk];
  };
  return { key, withdraw };
};

test("a WebSocket is closed when the issuer has withdrawn the key of its token, and others stay open", async (t) => {
  const own = await startRechecking(t);
  const { key, withdraw } = await publish("two");
  t.after(withdraw);
  const stays = await openWith(own, await sign({ sub: "stays" }));
  const token = await sign({ sub: "leaves" }, key);
  const leaves = await openWith(own, token);
  withdraw();
  await sendPings(t);
  assert.deepEqual(await leaves.closed, [1008, "the token is not valid"]);
  const { status } = await rpc(own.url, "eth_chainId", [], { authorization: `Bearer ${token}` });
  assert.equal(status, 401);
  await assertAnswered(stays.socket);
});

test("a WebSocket stays open while the issuer's keys cannot be read", async (t) => {
  const own = await startRechecking(t);
  const { socket } = await openWith(own, await sign({ sub: "patient" }));
  const readsBefore = reads;
  isIssuerDown = true;
  t.after(() => {
    isIssuerDown = false;
  });
  for (let count = 1; count <= 2; count++) {
    await sendPings(t);
    await until(() => reads === readsBefore + count, "the keys are asked for again");
    // It follows the pong.
    await assertAnswered(socket);
  }
});
