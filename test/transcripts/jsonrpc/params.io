// Params may be missing or null, as in geth and reth. Their text is forwarded unchanged.
>> {"jsonrpc":"2.0","id":1,"method":"m"}
<< {"jsonrpc":"2.0","id":1,"result":[]}
>> {"jsonrpc":"2.0","id":1,"method":"m","params":null}
<< {"jsonrpc":"2.0","id":1,"result":[]}
>> {"jsonrpc":"2.0","id":1,"method":"m","params":[ 1.0,"\u0041",{"b":1,"a":2,"a":3} ]}
<< {"jsonrpc":"2.0","id":1,"result":[ 1.0,"\u0041",{"b":1,"a":2,"a":3} ]}
// JSON-RPC 2.0 section 4.2 allows named parameters. No Ethereum method has any.
>> {"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"params must be an array: named parameters are not supported"}}
