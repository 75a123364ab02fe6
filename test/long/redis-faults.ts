import { type Asked, askAll, isHit } from "../support/clients/askAll.ts";
import { startLoad } from "../support/clients/load.ts";
import { settled } from "../support/clients/settled.ts";
import { until } from "../support/clients/until.ts";
import { startRedis } from "../support/servers/redis.ts";
import { redisFaults } from "../support/servers/redisFaults.ts";
import { createSealedChain, sharedCallsOf } from "../support/servers/sealedChain.ts";
import { createService } from "../support/servers/service.ts";
import { withLifespan } from "../support/servers/withLifespan.ts";

const DEFAULT_SECONDS = 100;
const REQUESTS = 300;
const AT_ONCE = 8;
const TIMEOUT_MS = 50;

interface FaultFigures {
  readonly fault: string;
  readonly answers: number;
  readonly failed: number;
  readonly p99BeforeMs: number;
  readonly p99MeanwhileMs: number;
  readonly hitsBackMs: number;
}

const percentile = (answers: readonly Asked[], share: number): number => {
  const sorted = answers.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b);
  return Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 10) / 10;
};

/** Injects faults of Redis under load. Reports failed requests, the p99 before and during each fault, and the time until hits return. */
export const long = ({ seconds = DEFAULT_SECONDS }: { seconds?: number }) =>
  withLifespan(async (t) => {
    const chain = await createSealedChain();
    t.after(() => chain.devnet.close());
    const calls = sharedCallsOf(chain, REQUESTS);
    const truth = new Map((await askAll(chain.devnet.anvilUrl, calls)).map(({ call, result }) => [call, result]));
    const server = await startRedis(t);
    const service = await createService(
      { nodes: [{ url: chain.devnet.anvilUrl }], pending: { mode: "node" } },
      { cache: { redis: server.url, redisTimeoutMs: TIMEOUT_MS, memoryBytes: 0 } },
    );
    t.after(() => service.close());
    await settled(service);

    const phaseMs = (seconds * 1_000) / redisFaults.length / 2;
    const during = async (ms: number, act: () => Promise<void> = async () => {}): Promise<readonly Asked[]> => {
      const load = startLoad(service.url, calls, AT_ONCE);
      const endMs = performance.now() + ms;
      await act();
      while (performance.now() < endMs) {
        await load.more(AT_ONCE);
      }
      return load.stop();
    };
    const allHit = () =>
      until(async () => (await askAll(service.url, calls)).every((answer) => isHit(answer, "redis")), "Redis serves");

    const faults: FaultFigures[] = [];
    for (const { name, begin, end } of redisFaults) {
      await allHit();
      const before = await during(phaseMs);
      const meanwhile = await during(phaseMs, () => begin(server));
      await end(server);
      const backMs = performance.now();
      await allHit();
      const failed = [...before, ...meanwhile].filter(({ call, result }) => result !== truth.get(call)).length;
      faults.push({
        fault: name,
        answers: meanwhile.length,
        failed,
        p99BeforeMs: percentile(before, 0.99),
        p99MeanwhileMs: percentile(meanwhile, 0.99),
        hitsBackMs: Math.round(performance.now() - backMs),
      });
    }
    const grows = ({ p99BeforeMs, p99MeanwhileMs }: FaultFigures) => p99MeanwhileMs - p99BeforeMs;
    return {
      claim: `no request fails, and p99 grows by no more than the deadline of ${TIMEOUT_MS} ms`,
      faults,
      passed: faults.every((fault) => fault.failed === 0 && grows(fault) <= TIMEOUT_MS),
    };
  });
