>> {"jsonrpc":"2.0","id":1,"method":"eth_newBlockFilter","params":[]}
<< {"jsonrpc":"2.0","id":1,"result":"{{filter}}"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":["{{filter}}"]}
<< {"jsonrpc":"2.0","id":1,"result":[]}
== seal
// One hash per block.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":["{{filter}}"]}
<< {"jsonrpc":"2.0","id":1,"result":["0x2390873a60efda5c0b91539cda30f7bebdabc35e4827d616018302d457d6f37d"]}
