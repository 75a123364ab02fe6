>> {"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}
<< {"jsonrpc":"2.0","id":1,"result":"0x385"}
// It has no parameters. anvil reports that in its own words.
>> {"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":["latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"too many arguments, want at most 0"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid type: string \"latest\", expected unit"}}
