// State of a block that does not exist is -32000 `header not found`, as in geth.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x70997970c51812dc3a010c7d01b50e0d17dc79c8","0x1000"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"header not found"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"BlockOutOfRangeError: block height is 74 but requested was 4096"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x70997970c51812dc3a010c7d01b50e0d17dc79c8",{"blockHash":"0x1212121212121212121212121212121212121212121212121212121212121212"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"header not found"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Resource not found"}}
// An error names its parameter; anvil has its own words.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x12","latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid address: want an address, 20 bytes of hex"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid string length"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x70997970c51812dc3a010c7d01b50e0d17dc79c8",{"blockHash":"0x6b43a7b9ea1cb97c66065629aea52033b2771947039c862e88dcf7811110322e","blockNumber":"0x4a"}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid block: cannot specify both blockHash and blockNumber, choose one or the other"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"duplicate field `blockNumber`"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x70997970c51812dc3a010c7d01b50e0d17dc79c8",{}]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid block: blockHash must be 32 bytes of hex"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Expected `blockNumber` or `blockHash` with `requireCanonical` optionally"}}
