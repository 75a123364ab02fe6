// Inverted and too high ranges are errors, as in geth. anvil answers them.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x3","toBlock":"0x2"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid block range params"}}
<node {"jsonrpc":"2.0","id":1,"result":[]}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x3","toBlock":"0x1000"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"block range extends beyond current head block: requested 4096, head 74"}}
<node {"jsonrpc":"2.0","id":1,"result":[{"address":"0x5fbdb2315678afecb367f032d93f642f64180aa3","topics":["0x793333530bc27d845c36d8799afd0c1152c33d074b4419780fc2a82658267614","0x0000000000000000000000000000000000000000000000000000000000000001"],"data":"0x000000000000000000000000000000000000000000000000000000000000002a","blockHash":"0x6b43a7b9ea1cb97c66065629aea52033b2771947039c862e88dcf7811110322e","blockNumber":"0x4a","blockTimestamp":"0x65540258","transactionHash":"0x8e4bf0c614f9dc9c3dd2aa30379bf08d2209ef2bd71919709ba9e5d443d96750","transactionIndex":"0x0","logIndex":"0x0","removed":false}]}
// A block that does not exist.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"blockHash":"0x1212121212121212121212121212121212121212121212121212121212121212"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"unknown block"}}
// An error names its parameter; anvil has its own words.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"address":"0x1"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"address: expected 20 bytes of hex, or a list of such"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid variadic value or array type: data did not match any variant of untagged enum Variadic"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"topics":["0x1"]}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"topics[0]: expected null, 32 bytes of hex, or a list of such"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid variadic value or array type: data did not match any variant of untagged enum Variadic"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"topics":[null,null,null,null,null]}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"topics: more than 4 positions"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"exceeded maximum topics len"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[null]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"filter: expected an object"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid type: null, expected Filter object"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"missing value for required argument 0: filter"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"expected params sequence with length 1 but got 0"}}
