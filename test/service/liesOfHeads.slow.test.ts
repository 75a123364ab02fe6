import { testWrongHeads } from "./wrongHeads.ts";

testWrongHeads("other wrong heads and wrong chains", false);
