// A request without an id has no response, not even an error (JSON-RPC 2.0 section 4.1).
>> {"jsonrpc":"2.0","method":"m","params":[1]}
<< 
>> {"jsonrpc":"2.0","method":"fail"}
<< 
>> {"jsonrpc":"2.0","method":"m","params":{"a":1}}
<< 
>> [{"jsonrpc":"2.0","method":"m"},{"jsonrpc":"2.0","method":"fail"}]
<< 
>> [{"jsonrpc":"2.0","method":"m"},{"jsonrpc":"2.0","id":1,"method":"m","params":[]}]
<< [{"jsonrpc":"2.0","id":1,"result":[]}]
// An invalid request has a response with a null id.
>> {"jsonrpc":"2.0","params":[1]}
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: method must be a string"}}
