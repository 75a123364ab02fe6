>> {"jsonrpc":"2.0","id":1,"method":"eth_newBlockFilter","params":[]}
<< {"jsonrpc":"2.0","id":1,"result":"{{filter}}"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_uninstallFilter","params":["{{filter}}"]}
<< {"jsonrpc":"2.0","id":1,"result":true}
// It is gone.
>> {"jsonrpc":"2.0","id":1,"method":"eth_uninstallFilter","params":["{{filter}}"]}
<< {"jsonrpc":"2.0","id":1,"result":false}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":["{{filter}}"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"filter not found"}}
