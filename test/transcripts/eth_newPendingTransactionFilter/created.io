// A filter of the node.
>> {"jsonrpc":"2.0","id":1,"method":"eth_newPendingTransactionFilter","params":[]}
<< {"jsonrpc":"2.0","id":1,"result":"{{filter}}"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_uninstallFilter","params":["{{filter}}"]}
<< {"jsonrpc":"2.0","id":1,"result":true}
