// Without an id there is no answer, not even an error (JSON-RPC 2.0 section 4.1).
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
// What is no request at all is answered, with a null id.
>> {"jsonrpc":"2.0","params":[1]}
<< {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: method must be a string"}}
