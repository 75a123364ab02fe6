// Methods that control a node are refused. The node behind does not know this one.
>> {"jsonrpc":"2.0","id":1,"method":"admin_peers","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the method admin_peers is not allowed here: it can write to a node or use its accounts"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}
>> {"jsonrpc":"2.0","id":1,"method":"miner_start","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the method miner_start is not allowed here: it can write to a node or use its accounts"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}
>> {"jsonrpc":"2.0","id":1,"method":"debug_setHead","params":["0x1"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the method debug_setHead is not allowed here: it can write to a node or use its accounts"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}
