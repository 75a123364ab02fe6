>> {"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[{"address":"0x5fbdb2315678afecb367f032d93f642f64180aa3","topics":["0x793333530bc27d845c36d8799afd0c1152c33d074b4419780fc2a82658267614"]}]}
<< {"jsonrpc":"2.0","id":1,"result":"{{filter}}"}
// No block is sealed since.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":["{{filter}}"]}
<< {"jsonrpc":"2.0","id":1,"result":[]}
== seal
// The logs of the sealed block, once.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":["{{filter}}"]}
<< {"jsonrpc":"2.0","id":1,"result":[{"address":"0x5fbdb2315678afecb367f032d93f642f64180aa3","topics":["0x793333530bc27d845c36d8799afd0c1152c33d074b4419780fc2a82658267614","0x0000000000000000000000000000000000000000000000000000000000000001"],"data":"0x000000000000000000000000000000000000000000000000000000000000002b","blockHash":"0x2390873a60efda5c0b91539cda30f7bebdabc35e4827d616018302d457d6f37d","blockNumber":"0x4b","blockTimestamp":"0x65540294","transactionHash":"0x156cddd2933fdc1eb465fe42c016b5e9e9e8f36d841ec717c595bd888a9df22e","transactionIndex":"0x0","logIndex":"0x0","removed":false}]}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":["{{filter}}"]}
<< {"jsonrpc":"2.0","id":1,"result":[]}
// No such filter.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":["0x1"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"filter not found"}}
// An error names its parameter; anvil has its own words.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"missing value for required argument 0: id"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"expected params sequence with length 1 but got 0"}}
