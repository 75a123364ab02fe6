// A revert has code 3, with its reason and data.
>> {"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0x5fbdb2315678afecb367f032d93f642f64180aa3","data":"0xa9cc4718"},"latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"execution reverted: always fails","data":"0x08c379a00000000000000000000000000000000000000000000000000000000000000020000000000000000000000000000000000000000000000000000000000000000c616c77617973206661696c730000000000000000000000000000000000000000"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0x5fbdb2315678afecb367f032d93f642f64180aa3","data":"0xa9cc4718"},"pending"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"execution reverted: always fails","data":"0x08c379a00000000000000000000000000000000000000000000000000000000000000020000000000000000000000000000000000000000000000000000000000000000c616c77617973206661696c730000000000000000000000000000000000000000"}}
// More value than the account has, and code that is invalid. The codes and texts are those of geth.
>> {"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"from":"0x00000000000000000000000000000000000000dd","to":"0x00000000000000000000000000000000000000cc","value":"0x1"},"pending"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"err: insufficient funds for gas * price + value: address 0x00000000000000000000000000000000000000dd have 0 want 1 (supplied gas 50000000)"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32003,"message":"Insufficient funds for gas * price + value"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"data":"0xfe"},"pending"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"invalid opcode: INVALID"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"EVM error InvalidFEOpcode"}}
// An error names its parameter; anvil has its own words.
>> {"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0x1"},"pending"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid transaction.to: want an address, 20 bytes of hex"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"odd number of digits"}}
// geth's error for a block that does not exist.
>> {"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0x5fbdb2315678afecb367f032d93f642f64180aa3","data":"0xa9cc4718"},"0x1000"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"header not found"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"BlockOutOfRangeError: block height is 74 but requested was 4096"}}
