// All logs of the filter's range.
>> {"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[{"fromBlock":"0x4a","toBlock":"0x4a","address":"0x5fbdb2315678afecb367f032d93f642f64180aa3"}]}
<< {"jsonrpc":"2.0","id":1,"result":"{{filter}}"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getFilterLogs","params":["{{filter}}"]}
<< {"jsonrpc":"2.0","id":1,"result":[{"address":"0x5fbdb2315678afecb367f032d93f642f64180aa3","topics":["0x793333530bc27d845c36d8799afd0c1152c33d074b4419780fc2a82658267614","0x0000000000000000000000000000000000000000000000000000000000000001"],"data":"0x000000000000000000000000000000000000000000000000000000000000002a","blockHash":"0x6b43a7b9ea1cb97c66065629aea52033b2771947039c862e88dcf7811110322e","blockNumber":"0x4a","blockTimestamp":"0x65540258","transactionHash":"0x8e4bf0c614f9dc9c3dd2aa30379bf08d2209ef2bd71919709ba9e5d443d96750","transactionIndex":"0x0","logIndex":"0x0","removed":false}]}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getFilterLogs","params":["{{filter}}"]}
<< {"jsonrpc":"2.0","id":1,"result":[{"address":"0x5fbdb2315678afecb367f032d93f642f64180aa3","topics":["0x793333530bc27d845c36d8799afd0c1152c33d074b4419780fc2a82658267614","0x0000000000000000000000000000000000000000000000000000000000000001"],"data":"0x000000000000000000000000000000000000000000000000000000000000002a","blockHash":"0x6b43a7b9ea1cb97c66065629aea52033b2771947039c862e88dcf7811110322e","blockNumber":"0x4a","blockTimestamp":"0x65540258","transactionHash":"0x8e4bf0c614f9dc9c3dd2aa30379bf08d2209ef2bd71919709ba9e5d443d96750","transactionIndex":"0x0","logIndex":"0x0","removed":false}]}
// A filter of blocks has none.
>> {"jsonrpc":"2.0","id":1,"method":"eth_newBlockFilter","params":[]}
<< {"jsonrpc":"2.0","id":1,"result":"{{blocks}}"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getFilterLogs","params":["{{blocks}}"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"filter not found"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getFilterLogs","params":["0x1"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"filter not found"}}
