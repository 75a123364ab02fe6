// Ids are random.
>> {"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[{"address":"0x5fbdb2315678afecb367f032d93f642f64180aa3"}]}
<< {"jsonrpc":"2.0","id":1,"result":"{{filter}}"}
// It is in use until it is removed.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":["{{filter}}"]}
<< {"jsonrpc":"2.0","id":1,"result":[]}
>> {"jsonrpc":"2.0","id":1,"method":"eth_uninstallFilter","params":["{{filter}}"]}
<< {"jsonrpc":"2.0","id":1,"result":true}
// An inverted range is an error. anvil accepts it.
>> {"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[{"fromBlock":"0x3","toBlock":"0x2"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid block range params"}}
<node {"jsonrpc":"2.0","id":1,"result":"{{inverted}}"}
// An error names its parameter; anvil has its own words.
>> {"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[{"address":"0x1"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"address: expected 20 bytes of hex, or a list of such"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid variadic value or array type: data did not match any variant of untagged enum Variadic"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"missing value for required argument 0: filter"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"expected params sequence with length 1 but got 0"}}
