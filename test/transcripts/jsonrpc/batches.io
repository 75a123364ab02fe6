// Responses are in request order (ethers-io/ethers.js#2657). An invalid item does not affect the others.
>> [{"jsonrpc":"2.0","id":2,"method":"m","params":[1]},{"jsonrpc":"2.0","id":1,"method":"fail"},{"jsonrpc":"2.0","id":2,"method":"m","params":[3]}]
<< [{"jsonrpc":"2.0","id":2,"result":[1]},{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"failed"}},{"jsonrpc":"2.0","id":2,"result":[3]}]
>> [1,{"jsonrpc":"2.0","id":5},{"jsonrpc":"2.0","id":6,"method":"m","params":[]}]
<< [{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: not an object"}},{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"Invalid request: method must be a string"}},{"jsonrpc":"2.0","id":6,"result":[]}]
// JSON-RPC 2.0 section 6: the response to an empty batch is one error, not a list.
>> []
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: empty batch"}}
// A batch with one response is a list too.
>> [{"jsonrpc":"2.0","id":1,"method":"m","params":[]}]
<< [{"jsonrpc":"2.0","id":1,"result":[]}]
