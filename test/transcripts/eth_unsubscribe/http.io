// Subscriptions need a WebSocket connection. anvil does not know the method over HTTP.
>> {"jsonrpc":"2.0","id":1,"method":"eth_unsubscribe","params":["0x1"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"eth_unsubscribe needs a WebSocket connection"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}
