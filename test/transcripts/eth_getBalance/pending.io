>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x70997970c51812dc3a010c7d01b50e0d17dc79c8","earliest"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x21e19e0c9bab2400000"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x70997970c51812dc3a010c7d01b50e0d17dc79c8","0x2"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x21e19e0b8f576e71feb"}
// Block by hash (EIP-1898).
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x70997970c51812dc3a010c7d01b50e0d17dc79c8",{"blockHash":"0x6b43a7b9ea1cb97c66065629aea52033b2771947039c862e88dcf7811110322e"}]}
<< {"jsonrpc":"2.0","id":1,"result":"0x21e19e0a8f685b462a8"}
// The default is latest. anvil requires the parameter.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x70997970c51812dc3a010c7d01b50e0d17dc79c8"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x21e19e0a8f685b462a8"}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid length 1, expected tuple variant EthRequest::EthGetBalance with 2 elements"}}
// Bob's pre-confirmed transaction has paid its fee.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x70997970c51812dc3a010c7d01b50e0d17dc79c8","pending"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x21e19e0a8ee1fda2fbf"}
// An account that no pending block wrote.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc","pending"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x21e19e0c9bab2400000"}
// An account that does not exist.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x00000000000000000000000000000000000000dd","pending"]}
<< {"jsonrpc":"2.0","id":1,"result":"0x0"}
