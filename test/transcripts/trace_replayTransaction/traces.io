// The node answers: anvil does not have this method.
>> {"jsonrpc":"2.0","id":1,"method":"trace_replayTransaction","params":["0x55910de38f1227f80aad3da01ffa46727da5e74fc3464dfa0086941c825a8f35",["trace"]]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}
// An error names its parameter.
>> {"jsonrpc":"2.0","id":1,"method":"trace_replayTransaction","params":["0x55910de38f1227f80aad3da01ffa46727da5e74fc3464dfa0086941c825a8f35"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"missing value for required argument 1: traceTypes"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}
