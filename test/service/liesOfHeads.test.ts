import { testWrongHeads } from "./wrongHeads.ts";

testWrongHeads("wrong heads and wrong chains", true);
