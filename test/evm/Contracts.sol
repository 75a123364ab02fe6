// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

contract Token {
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    uint256 public totalSupply;
    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);
    error Insufficient(uint256 have, uint256 want);

    function mint(address to, uint256 value) public virtual {
        totalSupply += value;
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }
    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }
    function transfer(address to, uint256 value) public virtual returns (bool) {
        return move(msg.sender, to, value);
    }
    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        uint256 allowed = allowance[from][msg.sender];
        require(allowed >= value, "allowance");
        allowance[from][msg.sender] = allowed - value;
        return move(from, to, value);
    }
    function move(address from, address to, uint256 value) internal returns (bool) {
        uint256 have = balanceOf[from];
        if (have < value) revert Insufficient(have, value);
        unchecked { balanceOf[from] = have - value; }
        balanceOf[to] += value;
        emit Transfer(from, to, value);
        return true;
    }
}

contract PausableToken is Token {
    bool public paused;
    address public owner = msg.sender;
    function pause(bool value) external { require(msg.sender == owner, "owner"); paused = value; }
    function transfer(address to, uint256 value) public override returns (bool) {
        require(!paused, "paused");
        return super.transfer(to, value);
    }
}

contract Wrapped is Token {
    receive() external payable { deposit(); }
    function deposit() public payable { balanceOf[msg.sender] += msg.value; emit Transfer(address(0), msg.sender, msg.value); }
    function withdraw(uint256 value) external {
        balanceOf[msg.sender] -= value;
        (bool ok,) = msg.sender.call{value: value}("");
        require(ok, "send");
    }
}

contract Proxy {
    constructor(address implementation) {
        assembly { sstore(0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc, implementation) }
    }
    fallback() external payable {
        assembly {
            calldatacopy(0, 0, calldatasize())
            let ok := delegatecall(gas(), sload(0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc), 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            switch ok case 0 { revert(0, returndatasize()) } default { return(0, returndatasize()) }
        }
    }
}

contract Beacon { address public implementation; constructor(address at) { implementation = at; } }

contract BeaconProxy {
    address immutable beacon;
    constructor(address at) { beacon = at; }
    fallback() external payable {
        address at = Beacon(beacon).implementation();
        (bool ok, bytes memory data) = at.delegatecall(msg.data);
        assembly { switch ok case 0 { revert(add(data, 32), mload(data)) } default { return(add(data, 32), mload(data)) } }
    }
}

contract Cloner {
    event Cloned(address clone);
    function clone(address target, bytes32 salt) public returns (address made) {
        bytes memory code = abi.encodePacked(hex"3d602d80600a3d3981f3363d3d373d3d3d363d73", target, hex"5af43d82803e903d91602b57fd5bf3");
        assembly { made := create2(0, add(code, 32), mload(code), salt) }
        require(made != address(0), "taken");
        emit Cloned(made);
    }
    function cloneAndMint(address target, bytes32 salt, uint256 value) external returns (uint256) {
        Token token = Token(clone(target, salt));
        token.mint(msg.sender, value);
        return token.balanceOf(msg.sender);
    }
}

contract Child {
    uint256 public value;
    constructor(uint256 start) payable { require(start != 13, "unlucky"); value = start; }
    function end(address payable to) external { selfdestruct(to); }
}

contract Factory {
    function make(uint256 start) external payable returns (address, uint256) {
        Child child = new Child{value: msg.value}(start);
        return (address(child), child.value());
    }
    function makeAt(uint256 start, bytes32 salt) external payable returns (address) {
        return address(new Child{salt: salt, value: msg.value}(start));
    }
    function makeAndEnd(uint256 start, address payable to) external payable returns (uint256) {
        Child child = new Child{value: msg.value}(start);
        child.end(to);
        return address(child).code.length + address(child).balance;
    }
    function makeTwice(uint256 start, bytes32 salt) external returns (bool) {
        new Child{salt: salt}(start);
        try new Child{salt: salt}(start) { return true; } catch { return false; }
    }
}

contract Pair {
    Token public one; Token public two;
    uint112 public reserveOne; uint112 public reserveTwo; uint32 public last;
    event Swap(address indexed by, uint256 paid, uint256 got);
    constructor(Token a, Token b) { one = a; two = b; }
    function sync() public {
        reserveOne = uint112(one.balanceOf(address(this)));
        reserveTwo = uint112(two.balanceOf(address(this)));
        last = uint32(block.timestamp);
    }
    function quote(uint256 paid) public view returns (uint256) {
        uint256 fee = paid * 997;
        return (fee * reserveTwo) / (uint256(reserveOne) * 1000 + fee);
    }
    function swap(uint256 paid, uint256 least) external returns (uint256 got) {
        got = quote(paid);
        require(got >= least, "slippage");
        one.transferFrom(msg.sender, address(this), paid);
        two.transfer(msg.sender, got);
        sync();
        emit Swap(msg.sender, paid, got);
    }
}

contract Router {
    function swapTwice(Pair pair, uint256 paid, uint256 least) external returns (uint256 got) {
        pair.one().transferFrom(msg.sender, address(this), paid * 2);
        pair.one().approve(address(pair), type(uint256).max);
        got = pair.swap(paid, 0) + pair.swap(paid, 0);
        require(got >= least, "least");
        pair.two().transfer(msg.sender, got);
    }
}

contract Hasher {
    function keccak(uint256 times, uint256 size) external pure returns (bytes32 hash) {
        bytes memory data = new bytes(size % 5000);
        for (uint256 i = 0; i < times % 50; i++) hash = keccak256(abi.encodePacked(hash, data));
    }
    function sha(bytes calldata data) external pure returns (bytes32, bytes20) { return (sha256(data), ripemd160(data)); }
}

contract Precompiles {
    function run(uint256 at, bytes calldata data) external view returns (bool ok, bytes memory result) {
        (ok, result) = address(uint160(at % 24)).staticcall(data);
    }
    function p256(bytes calldata data) external view returns (bool ok, bytes memory result) { (ok, result) = address(0x100).staticcall(data); }
    function recover(bytes32 digest, uint8 v, bytes32 r, bytes32 s) external pure returns (address) { return ecrecover(digest, v, r, s); }
    function limited(uint256 at, uint256 limit, bytes calldata data) external view returns (bool ok, uint256 used) {
        uint256 before = gasleft();
        (ok,) = address(uint160(at % 24)).staticcall{gas: limit % 200000}(data);
        used = before - gasleft();
    }
}

contract Slots {
    struct Packed { uint64 a; uint64 b; uint128 c; }
    Packed[] public list; mapping(uint256 => Packed) public byKey; uint256[8] public words; string public text;
    function fill(uint256 count, uint64 value) external { for (uint256 i = 0; i < count % 20; i++) list.push(Packed(value, value + 1, value)); }
    function clear(uint256 count) external { for (uint256 i = 0; i < count % 20 && list.length > 0; i++) list.pop(); }
    function churn(uint256 slot, uint256 a, uint256 b, uint256 c) external {
        slot %= 8; words[slot] = a; words[slot] = b; words[slot] = c; words[slot] = a;
    }
    function setText(string calldata value) external { text = value; }
    function wipe() external { delete words; delete text; }
}

contract Vault {
    Token public asset; mapping(address => uint256) public shares; uint256 public total;
    constructor(Token at) { asset = at; }
    function deposit(uint256 value) external returns (uint256 made) {
        uint256 held = asset.balanceOf(address(this));
        made = total == 0 ? value : (value * total) / (held == 0 ? 1 : held);
        asset.transferFrom(msg.sender, address(this), value);
        shares[msg.sender] += made; total += made;
    }
    function redeem(uint256 value) external returns (uint256 paid) {
        paid = (value * asset.balanceOf(address(this))) / total;
        shares[msg.sender] -= value; total -= value;
        asset.transfer(msg.sender, paid);
    }
}

contract Multicall {
    struct Call { address to; uint256 gasLimit; bytes data; }
    function tryAll(Call[] calldata calls) external payable returns (bool[] memory oks, bytes[] memory results) {
        oks = new bool[](calls.length); results = new bytes[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) (oks[i], results[i]) = calls[i].to.call{gas: calls[i].gasLimit}(calls[i].data);
    }
}

contract Merkle {
    function root(bytes32 leaf, bytes32[] calldata proof) external pure returns (bytes32 hash) {
        hash = leaf;
        for (uint256 i = 0; i < proof.length; i++)
            hash = hash < proof[i] ? keccak256(abi.encode(hash, proof[i])) : keccak256(abi.encode(proof[i], hash));
    }
}

contract Ballot {
    mapping(address => uint256) public voted; uint256[5] public votes; uint256 public deadline = type(uint256).max;
    event Voted(address indexed by, uint256 indexed choice, uint256 indexed weight, bytes reason) anonymous;
    function vote(uint256 choice, uint256 weight, bytes calldata reason) external {
        require(voted[msg.sender] == 0, "voted"); require(block.timestamp < deadline, "late");
        voted[msg.sender] = choice + 1; votes[choice] += weight;
        emit Voted(msg.sender, choice, weight, reason);
    }
}

contract Nft {
    mapping(uint256 => address) public ownerOf; mapping(address => uint256) public count;
    event Transfer(address indexed from, address indexed to, uint256 indexed id);
    function mint(uint256 id) public { require(ownerOf[id] == address(0), "minted"); ownerOf[id] = msg.sender; count[msg.sender]++; emit Transfer(address(0), msg.sender, id); }
    function mintMany(uint256 from, uint256 many) external { for (uint256 i = 0; i < many % 30; i++) mint(from + i); }
    function burn(uint256 id) external { require(ownerOf[id] == msg.sender, "owner"); delete ownerOf[id]; count[msg.sender]--; emit Transfer(msg.sender, address(0), id); }
}

contract Numbers {
    function mix(uint256 a, uint256 b, uint256 c) external pure returns (uint256 x) {
        unchecked { x = a * b + c; x ^= a << (b % 300); x += b >> (c % 300); x -= c; }
        if (c != 0) x = addmod(x, a, c) ^ mulmod(x, b, c);
        assembly { x := xor(x, byte(mod(a, 40), b)) x := add(x, signextend(mod(b, 40), c)) x := xor(x, exp(a, and(b, 0xff))) }
    }
    function signed(int256 a, int256 b) external pure returns (int256 x, bool less) { x = a / b + a % b; less = a < b; assembly { x := xor(x, sar(and(b, 0x1ff), a)) } }
    function checked(uint256 a, uint256 b) external pure returns (uint256) { return a * b - a / b; }
    function root(uint256 a) external pure returns (uint256 z) { z = a; uint256 x = a / 2 + 1; while (x < z) { z = x; x = (a / x + x) / 2; } }
}

contract Caller {
    uint256 public value;
    function set(uint256 to) external payable returns (address, address, uint256) { value = to; return (msg.sender, address(this), msg.value); }
    function callIt(address to, uint256 with) external payable returns (bool ok, bytes memory data) { (ok, data) = to.call{value: msg.value / 2}(abi.encodeCall(this.set, (with))); }
    function delegateIt(address to, uint256 with) external payable returns (bool ok, bytes memory data) { (ok, data) = to.delegatecall(abi.encodeCall(this.set, (with))); }
    function staticIt(address to, uint256 with) external view returns (bool ok, bytes memory data) { (ok, data) = to.staticcall(abi.encodeCall(this.set, (with))); }
    function codeIt(address to, uint256 with) external payable returns (bool ok, uint256 now_) {
        bytes memory data = abi.encodeCall(this.set, (with));
        assembly { ok := callcode(gas(), to, div(callvalue(), 3), add(data, 32), mload(data), 0, 0) }
        now_ = value;
    }
    function deep(uint256 left) external returns (uint256) { if (left % 64 == 0) return gasleft() % 7; return this.deep(left % 64 - 1) + 1; }
    function fail(uint256 how) external {
        if (how % 6 == 0) revert("because");
        if (how % 6 == 1) assert(false);
        if (how % 6 == 2) assembly { invalid() }
        if (how % 6 == 3) assembly { returndatacopy(0, 0, 100) }
        if (how % 6 == 4) { uint256[] memory none = new uint256[](0); none[how]; }
        for (;;) value++;
    }
}

contract Transient {
    function cycle(uint256 key, uint256 word) external returns (uint256 back) {
        assembly { tstore(key, word) back := tload(key) mstore(0x80, word) mcopy(0xa0, 0x80, 32) back := add(back, mload(0xa0)) }
    }
}

contract Environment {
    function block_() external view returns (uint256, uint256, address, uint256, uint256, uint256, uint256) {
        return (block.number, block.timestamp, block.coinbase, block.prevrandao, block.gaslimit, block.basefee, block.chainid);
    }
    function hashes(uint256 back) external view returns (bytes32, uint256) { return (blockhash(block.number - (back % 4)), block.blobbasefee); }
    function look(address at) external view returns (uint256, uint256, bytes32, bytes memory) { return (at.balance, at.code.length, at.codehash, at.code); }
    function self() external payable returns (uint256, uint256, address, uint256) { return (address(this).balance, tx.gasprice, tx.origin, gasleft() / 1000000); }
}
