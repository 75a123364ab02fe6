// An error names its parameter; anvil does not have the method.
>> {"jsonrpc":"2.0","id":1,"method":"eth_capabilities","params":["latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"too many arguments, want at most 0"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}
