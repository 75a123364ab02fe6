// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// The traffic's contract: an ERC-20, storage to write, and a call that fails.
contract Token {
    string public constant name = "Basin";
    string public constant symbol = "BSN";
    uint8 public constant decimals = 18;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    mapping(uint256 => uint256) public stored;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);
    event Stored(uint256 indexed key, uint256 value);

    constructor(address[] memory owners, uint256 each) {
        for (uint256 i = 0; i < owners.length; i++) {
            balanceOf[owners[i]] += each;
            totalSupply += each;
            emit Transfer(address(0), owners[i], each);
        }
    }

    function transfer(address to, uint256 value) external returns (bool) {
        return move(msg.sender, to, value);
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        require(allowance[from][msg.sender] >= value, "allowance too low");
        allowance[from][msg.sender] -= value;
        return move(from, to, value);
    }

    function store(uint256 key, uint256 value) external {
        stored[key] = value;
        emit Stored(key, value);
    }

    function fail() external {
        emit Stored(0, 0);
        revert("always fails");
    }

    function move(address from, address to, uint256 value) internal returns (bool) {
        require(balanceOf[from] >= value, "balance too low");
        balanceOf[from] -= value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
        return true;
    }
}
