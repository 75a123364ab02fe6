// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

contract Store {
    constructor() payable {}
    function set(uint256 slot, uint256 value) external payable {
        assembly { sstore(slot, value) }
    }
    function end(address payable to) external { selfdestruct(to); }
    receive() external payable {}
}

contract Actor {
    struct Step { uint8 kind; address target; uint256 first; uint256 second; }

    receive() external payable {}

    function run(Step[] calldata steps) public payable {
        for (uint256 i = 0; i < steps.length; i++) act(steps[i]);
    }
    /// Runs the steps, then reverts them.
    function undo(Step[] calldata steps) external {
        try this.fail(steps) {} catch {}
    }
    function fail(Step[] calldata steps) external {
        run(steps);
        revert("undone");
    }
    function failToEnd(address target) external {
        target.call(abi.encodeCall(Store.end, (payable(target))));
        revert("undone");
    }
    function act(Step calldata step) internal {
        if (step.kind == 0) {
            bytes memory code = type(Store).creationCode;
            uint256 salt = step.first;
            assembly { pop(create2(0, add(code, 32), mload(code), salt)) }
        } else if (step.kind == 1) {
            step.target.call(abi.encodeCall(Store.set, (step.first, step.second)));
        } else if (step.kind == 2) {
            step.target.call(abi.encodeCall(Store.end, (payable(address(uint160(step.first))))));
        } else if (step.kind == 3) {
            try this.failToEnd(step.target) {} catch {}
        } else {
            step.target.call{value: step.first}("");
        }
    }
}
