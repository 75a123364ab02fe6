import { QUICK_FAULTS, testPlantedFaults } from "./foundFaults.ts";

testPlantedFaults((fault) => QUICK_FAULTS.includes(fault));
