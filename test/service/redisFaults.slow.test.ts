import { redisFaults } from "../support/servers/redisFaults.ts";
import { testRedisFaults } from "./redisUnderLoad.ts";

testRedisFaults("memory off, Redis alone", redisFaults.slice(1));
