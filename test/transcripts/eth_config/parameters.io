// An error names its parameter; anvil has its own words.
>> {"jsonrpc":"2.0","id":1,"method":"eth_config","params":["latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"too many arguments, want at most 0"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid type: string \"latest\", expected unit"}}
