import type { Lifespan } from "../servers/redis.ts";
import { callsOf, type Front, type FrontResponse, forwardTo, isBatch, type NodeCall, startFront } from "./front.ts";

/** One JSON-RPC response: `result` or `error`, with its id. */
export type LieResponse = Readonly<Record<string, unknown>>;

/** Sends a call to the honest node and returns the result; throws on an error. */
export type AskTruth = (method: string, params: readonly unknown[]) => Promise<unknown>;

/** Wrong responses of a node. A function that changes nothing returns its first argument. */
export interface Lie {
  readonly name: string;
  /** Methods whose responses are changed; all by default. */
  readonly methods?: readonly string[];
  /** Changes the result of one call. */
  readonly result?: (result: unknown, call: NodeCall, truth: AskTruth) => unknown;
  /** Changes the whole response to one call, e.g. its id. After `result`. */
  readonly response?: (response: LieResponse, call: NodeCall, truth: AskTruth) => unknown;
  /** Changes the HTTP response, e.g. its status or its JSON text. After `response`; called if one of the calls is concerned. */
  readonly http?: (http: FrontResponse, calls: readonly NodeCall[]) => FrontResponse;
}

export interface LyingNode extends Front {
  /** The honest node that answers; can be replaced. */
  target: string;
  /** The wrong responses; can be replaced. Applied in order. With an empty list the node is honest. */
  lies: readonly Lie[];
  /** Calls and HTTP responses that a lie has changed, by the name of the lie. */
  readonly lied: ReadonlyMap<string, number>;
  /** Calls by method; batch items count singly. */
  readonly calls: ReadonlyMap<string, number>;
  /** The number of all calls. */
  readonly total: number;
}

const concerns = ({ methods }: Lie, { method }: NodeCall): boolean => methods === undefined || methods.includes(method);

const increment = (counts: Map<string, number>, key: string): void => {
  counts.set(key, (counts.get(key) ?? 0) + 1);
};

/** Applies wrong responses to those of an honest node, and counts them. */
export class LieTeller {
  /** Calls and HTTP responses that a lie has changed, by the name of the lie. */
  readonly lied = new Map<string, number>();
  readonly #post: (body: string) => Promise<FrontResponse>;

  /** `post` sends a body to the honest node. */
  constructor(post: (body: string) => Promise<FrontResponse>) {
    this.#post = post;
  }

  /** Answers a body. The lies are applied in order. */
  async answer(body: string, lies: readonly Lie[]): Promise<FrontResponse> {
    const truth = await this.#post(body);
    if (lies.length === 0) {
      return truth;
    }
    const asked = callsOf(body);
    const responses = [JSON.parse(truth.text)].flat() as LieResponse[];
    const changed = await Promise.all(
      responses.map((response) => {
        const call = asked.find(({ id }) => id === response.id);
        return call ? this.#tell(response, call, lies) : response;
      }),
    );
    let http: FrontResponse = { ...truth, text: JSON.stringify(isBatch(body) ? changed : changed[0]) };
    for (const lie of lies.filter((each) => asked.some((call) => concerns(each, call)))) {
      const next = lie.http?.(http, asked) ?? http;
      if (next !== http) {
        increment(this.lied, lie.name);
      }
      http = next;
    }
    return http;
  }

  readonly #askTruth: AskTruth = async (method, params) => {
    const { text } = await this.#post(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
    const { result, error } = JSON.parse(text);
    if (error) {
      throw new Error(`${method}: ${error.message}`);
    }
    return result;
  };

  async #tell(truth: LieResponse, call: NodeCall, lies: readonly Lie[]): Promise<unknown> {
    let response: unknown = truth;
    for (const lie of lies.filter((each) => concerns(each, call))) {
      let next: unknown = response;
      const before = Object(next);
      if (lie.result && "result" in before) {
        const result = await lie.result(before.result, call, this.#askTruth);
        if (result !== before.result) {
          next = { ...before, result };
        }
      }
      if (lie.response) {
        next = await lie.response(Object(next), call, this.#askTruth);
      }
      if (next !== response) {
        increment(this.lied, lie.name);
      }
      response = next;
    }
    return response;
  }
}

/** Forwards requests to a node, counts their calls, and changes its answers by the configured lies. Ends with the test. */
export const startLyingNode = async (t: Lifespan, target: string, lies: readonly Lie[] = []): Promise<LyingNode> => {
  const calls = new Map<string, number>();
  const teller = new LieTeller((body) => forwardTo(node.target, body));
  const front = await startFront((body) => {
    for (const { method } of callsOf(body)) {
      increment(calls, method);
    }
    return teller.answer(body, node.lies);
  });
  const node: LyingNode = {
    ...front,
    target,
    lies,
    lied: teller.lied,
    calls,
    get total() {
      return calls.values().reduce((sum, count) => sum + count, 0);
    },
  };
  t.after(() => node.close());
  return node;
};
