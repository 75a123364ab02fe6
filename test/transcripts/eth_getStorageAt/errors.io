// The texts are those of geth, or name the parameter; anvil has its own words.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":["0x5fbdb2315678afecb367f032d93f642f64180aa3"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"missing value for required argument 1: position"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid length 1, expected tuple variant EthRequest::EthGetStorageAt with 3 elements"}}
// forebay rejects an empty slot, which anvil reads as slot zero.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":["0x5fbdb2315678afecb367f032d93f642f64180aa3","","latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid position: want a storage slot as a hex integer"}}
<node {"jsonrpc":"2.0","id":1,"result":"0x00000000000000000000000000000000000000000001a784379d99db42000000"}
// geth rejects a slot of more than 32 bytes. anvil does not.
>> {"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":["0x5fbdb2315678afecb367f032d93f642f64180aa3","0x000000000000000000000000000000000000000000000000000000000000000000","latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"storage key too long (want at most 32 bytes): \"0x000000000000000000000000000000000000000000000000000000000000000000\""}}
<node {"jsonrpc":"2.0","id":1,"result":"0x00000000000000000000000000000000000000000001a784379d99db42000000"}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":["0x5fbdb2315678afecb367f032d93f642f64180aa3","0xzz","latest"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid hex in storage key: \"0xzz\""}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid value: string \"0xzz\", expected a 32 byte hex string"}}
>> {"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":["0x5fbdb2315678afecb367f032d93f642f64180aa3","0x0","0x1000"]}
<< {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"header not found"}}
<node {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"BlockOutOfRangeError: block height is 74 but requested was 4096"}}
