// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

contract Token {
    mapping(address => uint256) public balanceOf;
    event Transfer(address indexed from, address indexed to, uint256 value);
    function mint(address to, uint256 value) external { balanceOf[to] += value; }
    function transfer(address to, uint256 value) public returns (bool) {
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }
}

contract Loops is Token {
    mapping(uint256 => uint256) slots;
    Token immutable other = new Token();
    constructor() { other.mint(address(this), 1e30); balanceOf[address(this)] = 1e30; }
    function transfers(uint256 times) external {
        for (uint256 i = 0; i < times; i++) {
            balanceOf[address(this)] -= 1;
            balanceOf[address(uint160(i % 7 + 1))] += 1;
            emit Transfer(address(this), address(uint160(i % 7 + 1)), 1);
        }
    }
    function calls(uint256 times) external { for (uint256 i = 0; i < times; i++) other.transfer(address(uint160(i % 7 + 1)), 1); }
    function hashes(uint256 times) external pure returns (bytes32 hash) {
        bytes memory data = new bytes(4096);
        for (uint256 i = 0; i < times; i++) { hash = keccak256(data); assembly { mstore(add(data, 32), hash) } }
    }
    function storage_(uint256 times) external { for (uint256 i = 0; i < times; i++) slots[i % 16] = i + slots[(i + 1) % 16]; }
    function numbers(uint256 times) external pure returns (uint256 x) {
        x = 3;
        unchecked { for (uint256 i = 1; i <= times; i++) x = ((x * i + 7) ^ (x >> 3)) % (i + 1000003); }
    }
}
