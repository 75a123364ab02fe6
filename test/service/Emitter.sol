// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// Many logs in one transaction, with topics from a small set so that filters meet them.
contract Emitter {
    event Something(uint256 indexed kind, uint256 indexed other, uint256 value);

    function emitMany(uint256 count, uint256 seed) external {
        for (uint256 i = 0; i < count; i++) {
            emit Something((seed + i) % 7, (seed * i) % 7, i);
        }
    }
}
